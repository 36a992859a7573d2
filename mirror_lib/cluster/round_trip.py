"""How long a broker takes to answer, which tells how far away it is: looked at once, when it is connected."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mirror_lib.cluster.data_connection import DataConnection
from mirror_lib.cluster.data_protocol import API_VERSIONS, API_VERSIONS_VERSION

_SURELY_NEAR_SECONDS = 0.005
#: A busy broker, or a busy machine here, may take its time several times in a row; what that adds is mostly less than
#: this. An answer that takes longer twice has come from far away.
_DOUBTFUL_SECONDS = 0.05
_PROBES, _PROBES_IN_DOUBT = 2, 6


def is_told(probes: Sequence[float]) -> bool:
    """Whether probes, in seconds, tell by the shortest of them how far away a broker is."""
    shortest = min(probes)
    if shortest < _SURELY_NEAR_SECONDS:
        return True
    return len(probes) >= (_PROBES if shortest >= _DOUBTFUL_SECONDS else _PROBES_IN_DOUBT)


async def round_trip(connection: DataConnection) -> float:
    """Seconds that an answer takes on a connection over which nothing else goes yet."""
    probes: list[float] = []
    while not probes or not is_told(probes):
        began = time.monotonic()
        await connection.request(API_VERSIONS, API_VERSIONS_VERSION, ())
        probes.append(time.monotonic() - began)
    return min(probes)
