"""The plan of a return after a disaster: which records only the restored source has, and which only the target.

Writers were not stopped, so there is no cut up to which both sides hold the same records. Source records after the
position never reached the target. Records written to the target since then are to be copied back after them, and
records that were copied before must not come twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec, TopicDescription
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.recovery import walk_along
from mirror_lib.copy.takeover.tail_match import MismatchError, TailMatcher
from mirror_lib.counted import counted
from mirror_lib.errors import (
    ConfigurationError,
    DirtyStartError,
    MirrorError,
    SourceRecreatedError,
    SourceTruncatedError,
    TargetRecreatedError,
    TargetTruncatedError,
    Where,
)
from mirror_lib.features.cutover.failback.failback import why_no_failback
from mirror_lib.features.cutover.scope import ScopeTopic, scope_topics, without_handovers
from mirror_lib.features.cutover.states.disaster import after_disaster, copy_all_back, run_back
from mirror_lib.identity.targets import TargetPartition, copied_to, target_change, target_cluster_change
from mirror_lib.markdown_text import markdown_text
from mirror_lib.offsets.runs import merge
from mirror_lib.planning.backfills import again
from mirror_lib.planning.facts import with_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Span
from mirror_lib.topology.flow_topology import shown_choice
from mirror_lib.topology.names import FlowId, TopicPartition

#: Topics that an error message names at most.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class ReturningPartition:
    """One partition whose source was lost and is back; printable before anything is done."""

    source: TopicPartition
    target: TopicPartition
    #: The source offset after the last record that reached the target.
    copied_to: int = 0
    #: Log end offset of the source.
    source_end: int = 0
    #: The target offset after the last record from the source, and the log end offset of the target.
    target_next: int = 0
    target_end: int = 0
    #: Position of the flow, whose offset map only the target keeps; None if nothing was ever copied.
    position: Position | None = None
    #: Why failback of the partition cannot be prepared.
    error: MirrorError | None = None

    @property
    def left_behind(self) -> int:
        """Source offsets that never reached the target."""
        return self.source_end - self.copied_to

    @property
    def came_since(self) -> int:
        """Target offsets that other producers have written."""
        return self.target_end - self.target_next

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.source}: {self.error.what}"
        lost = "all offsets were copied to the target"
        if self.left_behind:
            lost = f"offsets {self.copied_to} to {self.source_end - 1} were never copied to the target"
        home = (
            f"{self.target} will be copied back from offset {self.target_next} "
            f"({counted(self.came_since, 'offset')} so far)"
        )
        return f"{self.source}: {lost}; {home}, to source offset {self.source_end}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "copied_to": self.copied_to,
            "source_end": self.source_end,
            "left_behind": self.left_behind,
            "target_next": self.target_next,
            "target_end": self.target_end,
            "came_since": self.came_since,
            "error": None if self.error is None else self.error.attributes(),
        }


@dataclass(frozen=True, slots=True)
class ReturnPlan:
    """What is lost, and where the failback flow would begin; printable before anything is done."""

    #: The flow whose source was lost, as it runs now.
    flow: FlowConfig
    #: The failback flow.
    opposite: FlowConfig
    partitions: tuple[ReturningPartition, ...]
    #: Topics that are not on the target: nothing of them can be copied back, and the flow continues to copy them.
    staying: tuple[str, ...] = ()

    @property
    def errors(self) -> list[MirrorError]:
        """Why partitions cannot be handed over; with any error, none is."""
        return [each.error for each in self.partitions if each.error is not None]

    @property
    def fingerprint(self) -> str:
        """Identifies the approved plan; new records on the target do not change it."""
        agreed = sorted((*each.source, each.copied_to, each.source_end, each.target_next) for each in self.partitions)
        return hashlib.sha256(json.dumps(agreed).encode()).hexdigest()[:16]

    @property
    def left_behind(self) -> int:
        """Source offsets that never reached the target."""
        return sum(each.left_behind for each in self.partitions)

    def __str__(self) -> str:
        added = sum(each.came_since for each in self.partitions)
        return (
            f"{counted(len(self.partitions), 'partition')}: "
            f"{counted(self.left_behind, 'offset was', 'offsets were')} never copied to {self.flow.flow.target}; "
            f"flow {self.opposite.flow} copies {counted(added, 'newer offset')} back"
        )

    @property
    def staying_text(self) -> str:
        """Message about the topics that stay."""
        flow = self.flow.flow
        return f"Not on {flow.target}; flow {flow} continues to copy them: {', '.join(self.staying)}"

    def markdown(self, most: int) -> str:
        """Return the plan for the approval page, with the `most` partitions that lack most."""
        listed = sorted(self.partitions, key=lambda each: (-each.left_behind, each.source))[:most]
        source = markdown_text(self.flow.flow.source)
        lines = [
            f"**{markdown_text(str(self))}**",
            "",
            f"| partition on {source} | copied to | log end offset | never copied | copied back from | from offset | "
            "offsets so far |",
            "|---|---|---|---|---|---|---|",
            *(
                f"| {_cell(each.source)} | {_cell(each.copied_to)} | {each.source_end} | {each.left_behind:,} "
                f"| {_cell(each.target)} | {each.target_next} | {each.came_since:,} |"
                for each in listed
            ),
        ]
        if len(listed) < len(self.partitions):
            lines += ["", f"and {len(self.partitions) - len(listed):,} more: see the log of the previous task."]
        if self.staying:
            lines += ["", markdown_text(self.staying_text)]
        return "\n".join(lines)


def _cell(value: object) -> str:
    return markdown_text(str(value))


def plan_return(flow: FlowConfig, opposite: FlowConfig | None, topics: Sequence[str]) -> ReturnPlan:
    """Return what only the source has, and where the failback flow would begin; changes nothing.

    Args:
        flow: the flow whose source was lost, as it runs now.
        opposite: the enabled flow from the target to the source.
        topics: Java regexes for source topics.

    Raises:
        ConfigurationError: the flow no longer has such topics, or no flow could copy them back.
        MirrorError: a request to a cluster failed.
    """
    found = scope_topics(flow, topics)
    if not found:
        raise _no_topic(flow, topics)
    missing = why_no_failback(flow, opposite, found)
    if missing is None and opposite is not None and not opposite.failback:
        missing = f"flow {opposite.flow} would copy all records: mirror.failback = true is missing."
    if missing is not None:
        raise ConfigurationError(missing, action="Add the failback flow to the file (docs/runbooks.md, 1).")
    # `why_no_failback` returns an error for None.
    assert opposite is not None
    both = [topic for topic in found if topic.target_partitions]
    if not both:
        raise ConfigurationError(
            f"none of the topics of flow {flow.flow} that match {shown_choice(topics)} is on {flow.flow.target}: there "
            "is nothing to copy back.",
            action="Let the flow itself continue to copy them.",
        )
    with FlowClusters.connect(flow) as clusters:
        partitions = _looked_at(flow, clusters, both)
    return ReturnPlan(flow, opposite, partitions, tuple(topic.source for topic in found if topic not in both))


#: Start and end of a partition that does not exist yet.
_EMPTY = OffsetFact(offset=0)


def _looked_at(
    flow: FlowConfig, clusters: FlowClusters, topics: Iterable[ScopeTopic]
) -> tuple[ReturningPartition, ...]:
    # A topic of the source may have new partitions that no run has created on the target yet.
    exists = {target: target.partition < topic.target_partitions for topic in topics for _, target in topic.pairs}
    pairs = [pair for topic in topics for pair in topic.pairs]
    described = clusters.source_admin.describe_topics(sorted({source.topic for source, _ in pairs}))
    stored = clusters.positions.read_all().positions
    homes = clusters.target_admin.describe_topics({target.topic for target in exists if exists[target]})
    targets = [target for target in exists if exists[target]]
    begins = clusters.target_admin.list_offsets(targets, OffsetSpec.EARLIEST)
    target_ends = clusters.target_admin.list_offsets(targets, OffsetSpec.LATEST)
    source_begins = clusters.source_admin.list_offsets([source for source, _ in pairs], OffsetSpec.EARLIEST)
    source_ends = clusters.source_admin.list_offsets([source for source, _ in pairs], OffsetSpec.LATEST)
    found = []
    for source, target in pairs:
        where = Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)
        place = ReturningPartition(source, target)
        on_target = (begins[target], target_ends[target]) if exists[target] else (_EMPTY, _EMPTY)
        facts = (source_begins[source], source_ends[source], *on_target)
        try:
            position = stored[source].position if source in stored else None
            if position is not None:
                _check_target(position, target, homes.get(target.topic), on_target[1], clusters, where)
            found.append(_partition(flow.flow, place, position, described[source.topic], facts, where))
        except MirrorError as error:
            found.append(replace(place, error=with_flow(flow, error, source)))
    return asyncio.run(_with_what_came_behind(flow, clusters, found))


def _check_target(
    position: Position,
    target: TopicPartition,
    topic: TopicDescription | None,
    end: OffsetFact,
    clusters: FlowClusters,
    where: Where,
) -> None:
    """Raise if the target is another topic or cluster than the copied one; its log end is compared elsewhere."""
    now = TargetPartition(target.topic, topic.topic_id if topic else None, end.offset if topic else None)
    changed = target_cluster_change(position.clusters, clusters.ids())
    changed = changed or target_change(copied_to(position), now)
    if changed is not None and not isinstance(changed, TargetTruncatedError):
        changed.where, changed.action = where, _after_change(changed, clusters.flow.flow)
        raise changed


def _after_change(changed: MirrorError, flow: FlowId) -> str:
    """Return what to do; the ledger has no entry for it, since no run may copy to the target any more."""
    if isinstance(changed, TargetRecreatedError):
        return copy_all_back(flow)
    return (
        f"Correct the file (alias, bootstrap.servers, rename rules), then repeat: {after_disaster(flow)}. If the "
        "file is "
        f"correct: {copy_all_back(flow)}"
    )


def _no_topic(flow: FlowConfig, topics: Sequence[str]) -> ConfigurationError:
    what = f"flow {flow.flow} copies no topic that matches {shown_choice(topics)}"
    limits = flow_topology(without_handovers(flow), topics).limits
    gone = sorted(topic for topic in flow.handovers.away if all(limit.fullmatch(topic) for limit in limits))
    if gone:
        return ConfigurationError(
            f"{what}: {', '.join(gone[:_NAMED])} {'was' if len(gone) == 1 else 'were'} already handed over.",
            action=f"Nothing is left to hand over. To copy the newer records back: {run_back(flow.flow)}.",
        )
    return ConfigurationError(
        f"{what}.", action=f"`mirror topics plan --flow '{flow.flow}'` lists the topics of the flow."
    )


def _partition(
    flow: FlowId,
    place: ReturningPartition,
    position: Position | None,
    topic: TopicDescription,
    facts: tuple[OffsetFact, OffsetFact, OffsetFact, OffsetFact],
    where: Where,
) -> ReturningPartition:
    for fact in facts:
        if fact.error is not None:
            raise fact.error
    source_begin, source_end, target_begin, target_end = (fact.offset for fact in facts)
    place = replace(place, source_end=source_end, target_end=target_end)
    if position is None:
        return replace(place, copied_to=source_begin, target_next=target_begin)
    copied_to, back = position.offset + 1, copy_all_back(flow)
    if position.topic_id is not None and topic.topic_id not in (None, position.topic_id):
        raise SourceRecreatedError(
            "the topic was deleted and recreated on the source: it is not the topic that was copied.",
            where=where,
            action=back,
        )
    if source_end < copied_to:
        raise SourceTruncatedError(
            f"log end offset of the source is {source_end}, but it was copied up to {copied_to - 1}: the source lost "
            "records.",
            where=where,
            action=back,
        )
    if position.backfill is not None and position.state is PositionState.OPEN:
        raise DirtyStartError(
            f"backfill {position.backfill} into {place.target} was interrupted: the end of the copied records on the "
            "target is unknown.",
            where=where,
            action=f"Let it end: {again(flow, position.backfill)}, then repeat: {after_disaster(flow)}. If it stops "
            "with target-diverged, clients have written there since: do not set a position, that would lose their "
            f"records. {back}",
        )
    if position.target_offset is None:
        raise DirtyStartError(
            "the position does not contain the end of the copied records on the target: MirrorMaker 2 wrote it.",
            where=where,
            action=back,
        )
    if target_end < position.target_offset:
        raise TargetTruncatedError(
            f"log end offset of {place.target} is {target_end}, but it had acknowledged records up to "
            f"{position.target_offset - 1}.",
            where=where,
            action="Find out why the target lost data (unclean leader election?). Copy the records that only the "
            "source has to "
            "another topic: "
            f"`mirror backfill run --flow '{flow}' --topics '{place.source.topic}' --from earliest --to latest "
            f"--into-suffix .kept`. Then: {back}",
        )
    return replace(place, copied_to=copied_to, target_next=position.target_offset, position=position)


async def _with_what_came_behind(
    flow: FlowConfig, clusters: FlowClusters, found: Sequence[ReturningPartition]
) -> tuple[ReturningPartition, ...]:
    """Find what interrupted runs have written after their positions: it must not be copied back as new."""
    unsure = [
        each
        for each in found
        if each.position is not None
        and each.position.state is PositionState.OPEN
        and not each.position.in_transactions
        and each.target_next < each.target_end
    ]
    if not unsure:
        return tuple(found)
    async with open_clients(clusters.source_data, clusters.target_data) as (source, target):
        sure = {each.source: await _Tail(flow, each, source, target).explain() for each in unsure}
    return tuple(sure.get(each.source, each) for each in found)


class _Tail:
    """The part of a target partition after the position of an interrupted run."""

    def __init__(self, flow: FlowConfig, partition: ReturningPartition, source: RawClient, target: RawClient) -> None:
        committed = flow.isolation_level is IsolationLevel.READ_COMMITTED
        self._flow = flow.flow
        self._partition = partition
        where = Where(flow=str(flow.flow), topic=partition.source.topic, partition=partition.source.partition)
        settings = flow.copy_settings
        self._source = PartitionReader(source, partition.source, settings, read_committed=committed, interrupted=where)
        self._target = PartitionReader(target, partition.target, settings, read_committed=True, interrupted=where)
        self._where = where

    async def explain(self) -> ReturningPartition:
        """Return the partition including what the run had copied and not committed."""
        partition, position = self._partition, self._partition.position
        assert position is not None
        try:
            end = await self._end_of_own(position.producer_id)
            matcher = TailMatcher(partition.copied_to, partition.target_next, end, skipped=position.skipped)
            await walk_along(matcher, self._source.read, partial(self._read_target, end))
        except (MismatchError, RecordError, CodecError) as error:
            return replace(partition, error=self._unexplained_error(str(error)))
        except MirrorError as error:
            return replace(partition, error=error)
        found = matcher.match()
        position = replace(position, runs=merge((*position.runs, *found.runs)))
        return replace(partition, copied_to=found.source_next, target_next=end, position=position)

    async def _end_of_own(self, producer_id: int | None) -> int:
        """Return where the batches end that the run has written: no other producer has its id."""
        offset, reached = self._partition.target_next, -1
        while reached < offset < self._partition.target_end:
            reached = offset
            for each in await self._target.read(offset):
                # Control records and aborted records were written by no client.
                own = each.is_hidden or (each.header is not None and each.header.producer_id == producer_id)
                if each.next_offset > offset and not own:
                    return offset
                offset = max(offset, each.next_offset)
        return offset

    async def _read_target(self, end: int, offset: int) -> Sequence[Span]:
        found = [each for each in await self._target.read(offset) if each.first < end]
        if not found:
            # All of it was read a moment ago.
            raise self._unexplained_error(f"the target returns no records from offset {offset}")
        return found

    def _unexplained_error(self, why: str) -> DirtyStartError:
        return DirtyStartError(
            f"the records that an interrupted run wrote after its position differ from the source: {why}.",
            where=self._where,
            action=copy_all_back(self._flow),
        )
