"""Loops across several flows: records that return to a cluster and are copied again, endlessly.

A single flow sees a loop only in names of the default policy (`FlowTopology.is_cycle`). Identity names and renames hide
the origin of a topic, and an alias that contains the separator is misread; with all flows of a file, such loops are
found before anything is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mirror_lib.topology.flow_topology import FlowTopology

#: A topic that arrives at one cluster this often under new names will do so endlessly.
_VISITS = 4


class TopicOnCluster(NamedTuple):
    """A topic and the alias of its cluster."""

    cluster: str
    topic: str

    def __str__(self) -> str:
        return f"{self.topic} on {self.cluster}"


@dataclass(frozen=True, slots=True)
class Loop:
    """The path of a topic: if `closed`, from a topic back to itself; otherwise under names that grow endlessly."""

    path: tuple[TopicOnCluster, ...]
    closed: bool

    def __str__(self) -> str:
        return " -> ".join(str(place) for place in self.path) + ("" if self.closed else " -> and so on")


def find_loops(flows: Sequence[FlowTopology], topics: Mapping[str, Iterable[str]]) -> tuple[Loop, ...]:
    """Every loop that the given topics would enter, each once.

    Args:
        flows: the enabled flows of a file.
        topics: the topics to follow, by the alias of their cluster.
    """
    found: dict[frozenset[TopicOnCluster], Loop] = {}
    finished: set[TopicOnCluster] = set()
    starts = [TopicOnCluster(cluster, topic) for cluster, names in sorted(topics.items()) for topic in sorted(names)]
    for start in starts:
        # Depth first, with the path to each place.
        waiting: list[tuple[TopicOnCluster, ...]] = [(start,)]
        while waiting:
            path = waiting.pop()
            place = path[-1]
            loop = _loop_at_the_end(path)
            if loop is not None:
                found.setdefault(frozenset(loop.path), loop)
            elif place not in finished:
                waiting.extend((*path, next_) for next_ in _copies(place, flows))
        finished.add(start)
    return tuple(found.values())


def _copies(place: TopicOnCluster, flows: Sequence[FlowTopology]) -> list[TopicOnCluster]:
    return [
        TopicOnCluster(flow.flow.target, flow.remote_topic(place.topic))
        for flow in flows
        if flow.flow.source == place.cluster and flow.replicates(place.topic)
    ]


def _loop_at_the_end(path: tuple[TopicOnCluster, ...]) -> Loop | None:
    last = path[-1]
    if last in path[:-1]:
        return Loop(path[path.index(last) :], closed=True)
    if sum(place.cluster == last.cluster for place in path) >= _VISITS:
        return Loop(path, closed=False)
    return None
