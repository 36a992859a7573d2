"""The project's own settings that limit the copy rate, `mirror.rate.limit.*`."""

from __future__ import annotations

from mirror_lib.config.settings.definitions import LONG, Definition, Scope

RATE_LIMIT = "mirror.rate.limit.bytes"
READ_RATE_LIMIT = "mirror.rate.limit.read.bytes"
WRITE_RATE_LIMIT = "mirror.rate.limit.write.bytes"

_SINCE = "own"

RATE_FLOW_KEYS = (
    Definition(
        RATE_LIMIT,
        LONG,
        "0",
        Scope.FLOW,
        _SINCE,
        "Bytes that all tasks of the flow together read from the source in a second. 0: as many as they can.",
        minimum=0,
    ),
)

#: Settings of a cluster, which apply to all flows from or to it together.
CLUSTER_KEYS = (
    Definition(
        READ_RATE_LIMIT,
        LONG,
        "0",
        Scope.CLUSTER,
        _SINCE,
        "`A.mirror.rate.limit.read.bytes`: bytes that all flows from A together read from it in a second; the runs "
        "that copy at the same time share it through the ledger. 0: as many as they can.",
        minimum=0,
    ),
    Definition(
        WRITE_RATE_LIMIT,
        LONG,
        "0",
        Scope.CLUSTER,
        _SINCE,
        "`B.mirror.rate.limit.write.bytes`: the same of what all flows to B together write to it.",
        minimum=0,
    ),
)
