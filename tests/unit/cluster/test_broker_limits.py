"""What clusters are too old for, by the versions of requests that their brokers speak (KIP-35)."""

from __future__ import annotations

import pytest

from mirror_lib.cluster import broker_limits as module
from mirror_lib.cluster.broker_limits import version_limits
from mirror_lib.cluster.connection import Connection

# API key -> oldest and newest version, from the request schemas of each release.
METADATA, OFFSET_FETCH, FETCH = 3, 9, 1
KAFKA_2_7 = {METADATA: (0, 9), OFFSET_FETCH: (0, 7), FETCH: (0, 12)}
KAFKA_2_8 = {METADATA: (0, 11), OFFSET_FETCH: (0, 7), FETCH: (0, 12)}
KAFKA_3_9 = {METADATA: (0, 12), OFFSET_FETCH: (0, 9), FETCH: (0, 17)}
KAFKA_4_0 = {METADATA: (0, 13), OFFSET_FETCH: (1, 9), FETCH: (4, 17)}


class Brokers:
    """What is used of `RawClient`, for brokers of given versions."""

    cluster = "A"
    versions: tuple[dict[int, tuple[int, int]], ...] = ()

    def __init__(self, connection: Connection) -> None:
        del connection

    async def __aenter__(self) -> Brokers:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def brokers(self) -> tuple[int, ...]:
        return tuple(range(len(self.versions)))

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        oldest, newest = self.versions[node][api_key]
        return oldest <= version <= newest


def test_what_a_cluster_is_too_old_for(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    monkeypatch.setattr(module, "RawClient", Brokers)
    connection = Connection("A", ("localhost:1",))
    for versions, as_source, as_target in (
        ((KAFKA_2_7,), ["2.8", "3.0"], ["3.0", "4.0"]),
        ((KAFKA_2_8,), ["3.0"], ["3.0", "4.0"]),
        ((KAFKA_3_9,), [], ["4.0"]),
        ((KAFKA_4_0,), [], []),
        # In the middle of an upgrade the oldest broker counts.
        ((KAFKA_4_0, KAFKA_2_8), ["3.0"], ["3.0", "4.0"]),
    ):
        with subtests.test(versions=versions):
            monkeypatch.setattr(Brokers, "versions", versions)
            assert [limit.since for limit in version_limits(connection, source=True)] == as_source
            assert [limit.since for limit in version_limits(connection, source=False)] == as_target
            assert all(
                str(limit).startswith("Cluster A is older than") for limit in version_limits(connection, source=True)
            )
