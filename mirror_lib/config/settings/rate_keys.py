"""The project's own settings that limit the copy rate, `mirror.rate.limit.*`."""

from __future__ import annotations

from mirror_lib.config.settings.definition import LONG, Definition, Scope

READ_RATE_LIMIT = "mirror.rate.limit.read.bytes"
WRITE_RATE_LIMIT = "mirror.rate.limit.write.bytes"

_SINCE = "own"

#: Settings of a cluster, which apply to all flows from or to it together.
CLUSTER_KEYS = (
    Definition(
        READ_RATE_LIMIT,
        LONG,
        "0",
        Scope.CLUSTER,
        _SINCE,
        "`A.mirror.rate.limit.read.bytes`: maximum read rate from A in bytes/s, across all flows; concurrent runs "
        "share it through the ledger. 0: unlimited.",
        minimum=0,
    ),
    Definition(
        WRITE_RATE_LIMIT,
        LONG,
        "0",
        Scope.CLUSTER,
        _SINCE,
        "`B.mirror.rate.limit.write.bytes`: maximum write rate to B in bytes/s, across all flows. 0: unlimited.",
        minimum=0,
    ),
)
