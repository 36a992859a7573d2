"""Partitions that a flow has copied and selects no longer: pure rules.

A topic that is deleted, created again with fewer partitions, or dropped by a wrong pattern leaves the flow without an
error: no request fails, since nothing is requested. But its positions remain, and say what the flow once had to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.name_patterns import excludes_by_name
from mirror_lib.counted import counted
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.topology.flow_topology import Exclusion, FlowTopology
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class Unselected:
    """A partition that the flow has copied and selects no longer, and no operator has said that this is meant."""

    source: TopicPartition
    #: Why the flow does not select it: a clause.
    why: str
    #: The next source offset to copy.
    position: int
    topic_id: str | None = None
    #: Log end offset of the source as last observed, and when that was; None if it never was.
    log_end: int | None = None
    observed_at: datetime | None = None
    #: The source says that the topic does not exist, and the flow would select its name.
    deleted: bool = False

    @property
    def needs_decision(self) -> bool:
        """False if a deleted topic had been copied up to its last observed end: there is nothing to decide."""
        return not self.deleted or self.observed_at is None or self.left > 0

    @property
    def following(self) -> int:
        """The first source offset about which nothing is known."""
        return max(self.position, self.log_end or 0)

    @property
    def left(self) -> int:
        """Offsets that were observed and are not copied."""
        return self.following - self.position

    @property
    def progress(self) -> str:
        """Why it is not selected, how far it is copied, and how far the source was known: clauses."""
        copied = f"copied up to source offset {self.position - 1}" if self.position else "no record was copied"
        if self.observed_at is None:
            return f"{self.why}; {copied}; log end never observed"
        when = f"{self.observed_at:%Y-%m-%d at %H:%M:%S}Z"
        return (
            f"{self.why}; {copied}; log end offset {self.following} when last observed, on {when}: "
            f"{counted(self.left, 'offset is', 'offsets are')} not copied"
        )

    @property
    def detail(self) -> str:
        """As `progress`, as sentences."""
        return f"{self.progress}. What was written later is unknown."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "why": self.why,
            "position": self.position,
            "log_end": self.log_end,
            "observed_at": None if self.observed_at is None else self.observed_at.isoformat(),
            "deleted": self.deleted,
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """What a flow selects now, and why not the rest."""

    flow: FlowConfig
    topology: FlowTopology
    #: The topics of the source.
    listed: Container[str]
    #: Topics that the source neither shows nor denies: without permission to describe them they may exist.
    refused: Container[str]
    #: Selected partitions, number by topic. Partitions of a topic whose metadata could not be read are not known: None.
    partitions: Mapping[str, int | None]

    def judges(self, topic: str) -> bool:
        """Return True if a plan says something about a topic: it may be limited to others."""
        return all(limit.fullmatch(topic) for limit in self.topology.limits)

    def selects(self, source: TopicPartition) -> bool:
        """Return True if the flow selects a partition, or if that cannot be known now."""
        count = self.partitions.get(source.topic, 0)
        return count is None or source.partition < count

    def why_meant(self, topic: str) -> str | None:
        """Return why a topic is no longer copied on purpose; None if nothing says so."""
        handovers = self.topology.handovers
        if topic in handovers.away:
            return "a cutover has moved the producers of the topic"
        if self.topology.failback and handovers.restrict and topic not in handovers.here:
            return "the producers of the topic are no longer on the source of this failback flow"
        if excludes_by_name(self.flow, topic):
            return "`topics.exclude` names the topic"
        # They carry no data, and their own age is monitored.
        return "it is a heartbeats topic" if self.topology.policy.is_heartbeats_topic(topic) else None

    def is_deleted(self, topic: str) -> bool:
        """Return True if the source does not have a topic that the flow would select by its name."""
        is_absent = topic not in self.listed and topic not in self.refused
        return is_absent and self.topology.exclusion(topic) is None

    def why_not(self, source: TopicPartition) -> str:
        """Return why the flow does not select a partition that it has copied: a clause."""
        count, alias = self.partitions.get(source.topic), self.flow.flow.source
        if count:
            return f"the topic has only {counted(count, 'partition')} on {alias} now"
        exclusion = self.topology.exclusion(source.topic)
        if source.topic in self.listed and exclusion is not None:
            filters = "`topics` and `topics.exclude`" if exclusion is Exclusion.FILTERED else "the rules"
            return f"{filters} of the flow no longer select the topic ({exclusion.value}), which {alias} still has"
        if source.topic in self.refused:
            return f"the topic was deleted on {alias}, or the permission to describe it is missing"
        return f"the topic was deleted on {alias}"


def find_unselected(
    selection: Selection,
    positions: Mapping[TopicPartition, int],
    *,
    gaps: Iterable[GapRow],
    topic_ids: Callable[[TopicPartition], str | None],
    observations: Callable[[], Iterable[PartitionObservationRow]],
) -> Iterator[Unselected]:
    """Yield the partitions that have a position and that the flow selects no longer, unless that is meant.

    Args:
        selection: what the flow selects now.
        positions: the next source offset of partitions that the flow's ledger knows: others may be another flow's.
        gaps: the gaps of such partitions, open or accepted.
        topic_ids: ids of the copied source topics.
        observations: reads the partitions as last observed.
    """
    known = {(TopicPartition(gap.topic, gap.partition), gap.state): gap for gap in gaps}
    seen: dict[TopicPartition, PartitionObservationRow] | None = None
    for source, position in sorted(positions.items()):
        accepted = known.get((source, GapState.ACCEPTED))
        # Selected again since it was accepted, it has copied more.
        if accepted is not None and accepted.first_offset == position:
            continue
        found = known.get((source, GapState.OPEN))
        if found is not None:
            end, at = (None, None) if found.last_time is None else (found.next_offset, found.last_time)
        else:
            if seen is None:
                seen = {TopicPartition(row.topic, row.partition): row for row in observations()}
            row = seen.get(source)
            end, at = (None, None) if row is None or row.log_end is None else (row.log_end, row.observed_at)
        deleted = selection.is_deleted(source.topic)
        yield Unselected(source, selection.why_not(source), position, topic_ids(source), end, at, deleted)
