"""Partitions by their leaders, for requests of which one to each leader is enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mirror_lib.topology.names import TopicPartition


class KnowsLeaders(Protocol):
    """A client that has asked for the leaders of topics (`RawClient.refresh_leaders`)."""

    def leader(self, partition: TopicPartition) -> int | None:
        """The partition's leader; None if it is unknown or there is none."""


@dataclass(frozen=True, slots=True)
class ByLeader:
    """Partitions of each leader, and those without one, in the order in which they were given."""

    led: dict[int, list[TopicPartition]]
    without: list[TopicPartition]


def by_leader(client: KnowsLeaders, partitions: Iterable[TopicPartition]) -> ByLeader:
    """Group partitions by the node id of their leader."""
    grouped = ByLeader({}, [])
    for partition in partitions:
        leader = client.leader(partition)
        (grouped.without if leader is None else grouped.led.setdefault(leader, [])).append(partition)
    return grouped
