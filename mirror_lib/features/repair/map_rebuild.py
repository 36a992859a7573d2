"""Rebuild the offset map from the two logs if the ledger is lost or wrong.

Both logs are read from their start, twice: first their shape (markers, holes), then their records, which are matched
with one another (`log_alignment`). Brokers may compact a log between the two readings: then the readings are repeated
(`match_logs`). The end is the partition's position, a pair of offsets that is certain; it gives the distance of source
and target offsets there. Memory is limited to a fetch and a look-ahead for each side.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.stable_end import until_stable
from mirror_lib.copy.takeover.tail_match import MismatchError
from mirror_lib.errors import (
    CorruptBatchError,
    LedgerBehindError,
    MirrorError,
    TargetDivergedError,
    TransientError,
    Where,
)
from mirror_lib.features.repair.log_alignment import LOOKBACK, LogMatch, LogMatcher, LogShape, join
from mirror_lib.features.repair.map_rebuild_plan import RebuildPlan, by_direction
from mirror_lib.features.verify.own_deletions import hide_own_deletions
from mirror_lib.ledger.directions import MapPart, map_parts, run_id_in, with_ends
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.ledger.rows import NOT_COPIED, REPEATED, GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.ranges import unite
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.unknown_history import note_histories
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Span
from mirror_lib.topology.names import TopicPartition

#: Number of partitions that are read at the same time.
_AT_A_TIME = 2
#: Maximum number of runs in a ledger row.
_RUNS_PER_ROW = 50_000
#: Maximum number of readings if logs change in between; a cleaner rarely returns so soon.
_READINGS = 5

#: Called with the number of offsets read; each of both logs is read twice.
Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between the ledger's map and the one of the logs for a partition."""

    #: Records with the same target offset in both.
    same: int
    #: Records that only the ledger has: retention or compaction has removed them from a log since.
    only_in_ledger: int
    #: Records that only the logs have.
    only_in_logs: int
    #: Records with different target offsets.
    contradicting: int

    @property
    def changes(self) -> bool:
        """True if the ledger lacks records, or has other offsets."""
        return bool(self.only_in_logs or self.contradicting)

    @classmethod
    def between(cls, ledger: RunColumns, logs: RunColumns) -> Difference:
        """Compare two maps."""
        if not len(ledger) or not len(logs):
            return cls(0, ledger.records, logs.records, 0)
        edges = sorted(
            {
                *ledger.source_first.tolist(),
                *ledger.source_next.tolist(),
                *logs.source_first.tolist(),
                *logs.source_next.tolist(),
            }
        )
        found = (OffsetMap(ledger).to_target_many(edges[:-1]), OffsetMap(logs).to_target_many(edges[:-1]))
        same = contradicting = 0
        both = zip(edges, edges[1:], *(zip(each.offsets, each.codes, strict=True) for each in found), strict=False)
        for first, end, (there, code), (logs_there, logs_code) in both:
            if code or logs_code:
                continue
            if there == logs_there:
                same += end - first
            else:
                contradicting += end - first
        known = same + contradicting
        return cls(same, ledger.records - known, logs.records - known, contradicting)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of one partition; either `error` is set, or `match` and `difference`."""

    plan: RebuildPlan
    match: LogMatch | None = None
    difference: Difference | None = None
    error: MirrorError | None = None
    #: Which of both flows has copied each part, by the ledger.
    parts: tuple[MapPart, ...] = ()

    @property
    def changes(self) -> bool:
        """True if the ledger lacks records, or has other offsets."""
        return self.difference is not None and self.difference.changes

    @property
    def repeated(self) -> int:
        """The number of records that the target has twice."""
        return sum(following - first for first, following in self.match.repeated) if self.match else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        found: dict[str, Any] = self.plan.to_dict()
        if self.error is not None:
            return {**found, "error": self.error.attributes()}
        assert self.match is not None
        assert self.difference is not None
        return {
            **found,
            "records": self.match.columns.records,
            "runs": len(self.match.columns),
            "only_on_source": self.match.only_on_source,
            "only_on_target": self.match.only_on_target,
            "ambiguous": self.match.ambiguous,
            "repeated": self.repeated,
            "same": self.difference.same,
            "only_in_ledger": self.difference.only_in_ledger,
            "only_in_logs": self.difference.only_in_logs,
            "contradicting": self.difference.contradicting,
            "changes": self.changes,
        }


def rebuild(
    flow: FlowConfig,
    plans: Sequence[RebuildPlan],
    clusters: FlowClusters,
    ledger: Ledger,
    advance: Advance,
    *,
    opposite: FlowConfig | None = None,
) -> list[Rebuilt]:
    """Read the logs and compare them with the ledger; change nothing. An error of a partition does not stop others.

    Args:
        opposite: the opposite flow as configured: isolation level and policies of the records that it has copied.

    Raises:
        MirrorError: a cluster cannot be connected to.
    """
    return asyncio.run(_rebuild_all(flow, opposite, plans, clusters, ledger, advance))


def apply_rebuilt(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger, rebuilt: Sequence[Rebuilt], *, run_id: str, by: str
) -> int:
    """Replace the changed maps in the ledger; return their number.

    The ledger's segments before the first record that the logs still have are kept, unless they contradict the logs.
    What the ledger lacked of the partitions' histories is found now: those gaps are closed. Records that the target has
    twice are noted for the opposite flow, as its source has them only once: verification does not count them.

    Raises:
        MirrorError: the position topic or the ledger cannot be used.
    """
    matched = {each.plan.source: each.match for each in rebuilt if each.match is not None}
    stored = clusters.positions.read_all().positions
    positions = {source: stored[source].position for source in matched if source in stored}
    note_histories(flow, positions, ledger, run_id=run_id)
    _note_repeated(str(flow.flow.opposite), ledger, rebuilt, by=by, run_id=run_id)
    written = _write_maps(flow, ledger, rebuilt, run_id=run_id)
    _close_histories(flow, ledger, matched, by=by, run_id=run_id)
    return written


def _note_repeated(opposite: str, ledger: Ledger, rebuilt: Iterable[Rebuilt], *, by: str, run_id: str) -> None:
    noted = {
        (gap.topic, gap.partition, gap.first_offset, gap.next_offset)
        for gap in ledger.gaps(opposite, limit=None)
        if gap.cause == REPEATED
    }
    for each in rebuilt:
        for first, following in each.match.repeated if each.match is not None else ():
            if (*each.plan.target, first, following) not in noted:
                detail = "the records are copied once more later, as by MirrorMaker 2 after a crash"
                ledger.record_gap(
                    _accepted_gap(
                        opposite, each.plan.target, REPEATED, (first, following), detail, by=by, run_id=run_id
                    )
                )


def _accepted_gap(
    flow: str, place: TopicPartition, cause: str, offsets: tuple[int, int], detail: str, *, by: str, run_id: str
) -> GapRow:
    now = datetime.now(UTC)
    return GapRow(
        id=str(uuid.uuid4()),
        flow=flow,
        topic=place.topic,
        partition=place.partition,
        cause=cause,
        first_offset=offsets[0],
        next_offset=offsets[1],
        detail=detail,
        run_id=run_id,
        found_at=now,
        state=GapState.ACCEPTED.value,
        decided_by=by,
        decided_at=now,
    )


def _close_histories(
    flow: FlowConfig, ledger: Ledger, matched: Mapping[TopicPartition, LogMatch], *, by: str, run_id: str
) -> None:
    name = str(flow.flow)
    lacking: dict[TopicPartition, list[GapRow]] = {}
    for gap in ledger.open_gaps(name):
        if gap.cause == LedgerBehindError.reason:
            lacking.setdefault(TopicPartition(gap.topic, gap.partition), []).append(gap)
    for source, match in matched.items():
        gaps = lacking.get(source, ())
        for offsets in _within(match.missing, ((gap.first_offset, gap.next_offset) for gap in gaps)):
            detail = "the source has records there that the target lacks; why is not known any more"
            ledger.record_gap(_accepted_gap(name, source, NOT_COPIED, offsets, detail, by=by, run_id=run_id))
        for gap in gaps:
            ledger.decide_gap(gap.id, GapState.ACCEPTED, by=by, note="the map was rebuilt from both logs")


#: Rows for one partition; more of them become one.
_MOST_ROWS = 100


def _within(found: Sequence[tuple[int, int]], ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of some ranges that lie in others; one range if there are too many, as on a compacted target."""
    parts = unite(
        (max(first, begin), min(following, end))
        for begin, end in ranges
        for first, following in found
        if max(first, begin) < min(following, end)
    )
    return parts if len(parts) <= _MOST_ROWS else [(parts[0][0], parts[-1][1])]


def _write_maps(flow: FlowConfig, ledger: Ledger, rebuilt: Iterable[Rebuilt], *, run_id: str) -> int:
    written = 0
    for each in rebuilt:
        if each.match is None:
            continue
        source, columns = each.plan.source, each.match.columns
        known = _stored_runs(flow, ledger, source)
        difference = Difference.between(known, columns)
        if not difference.changes:
            continue
        if not difference.contradicting:
            columns = _with_older(known, columns)
        ledger.replace_segments(str(flow.flow), *source, _rows_by_direction(flow, source, columns, each.parts, run_id))
        written += 1
    return written


async def _rebuild_all(
    flow: FlowConfig,
    opposite: FlowConfig | None,
    plans: Sequence[RebuildPlan],
    clusters: FlowClusters,
    ledger: Ledger,
    advance: Advance,
) -> list[Rebuilt]:
    limit = asyncio.Semaphore(_AT_A_TIME)

    gaps = {name: ledger.gaps(name, limit=None) for name in (str(flow.flow), str(flow.flow.opposite))}

    async def match_piece(piece: RebuildPlan, source: RawClient, target: RawClient) -> LogMatch:
        """Match a piece with the settings of the flow that has copied it."""
        rules, name = flow, str(flow.flow)
        if piece.by_opposite:
            rules, name, source, target = opposite or flow, str(flow.flow.opposite), target, source
        logs = _Logs.of(rules, name, piece, source, target)
        return await logs.match(_skipped_ranges(rules, piece, gaps[name]), advance)

    async def one(plan: RebuildPlan, source: RawClient, target: RawClient) -> Rebuilt:
        parts = map_parts(ledger.segments(str(flow.flow), *plan.source))
        async with limit:
            try:
                found = [
                    (await match_piece(piece, source, target), piece.by_opposite) for piece in by_direction(plan, parts)
                ]
            except MirrorError as error:
                return Rebuilt(plan, error=error)
        match = join(found)
        known = _stored_runs(flow, ledger, plan.source)
        return Rebuilt(plan, match, Difference.between(known, match.columns), parts=parts)

    async with open_clients(clusters.source_data, clusters.target_data) as (source, target):
        return list(await asyncio.gather(*(one(plan, source, target) for plan in plans)))


def _skipped_ranges(flow: FlowConfig, plan: RebuildPlan, gaps: Iterable[GapRow]) -> Sequence[tuple[int, int]] | None:
    """Source ranges that may have been skipped; None if the ledger is unavailable and the policy allows skipping."""
    ranges = sorted(
        (gap.first_offset, gap.next_offset)
        for gap in gaps
        # An empty range means that records are lost, but not which.
        if (gap.topic, gap.partition) == plan.source and gap.next_offset > max(plan.source_start, gap.first_offset)
    )
    if not ranges and flow.copy_settings.poison_policy is not PoisonPolicy.FAIL:
        return None
    return ranges


@dataclass(frozen=True, slots=True)
class _Logs:
    """Both logs of one partition."""

    plan: RebuildPlan
    source: PartitionReader
    target: PartitionReader
    where: Where
    #: Client of the target.
    client: RawClient
    retry_seconds: float

    @classmethod
    def of(cls, flow: FlowConfig, name: str, plan: RebuildPlan, source: RawClient, target: RawClient) -> _Logs:
        """Create it without reading."""
        read_committed = flow.isolation_level is IsolationLevel.READ_COMMITTED
        return cls(
            plan,
            PartitionReader(source, plan.source, flow.copy_settings, read_committed=read_committed),
            # Consumers of committed records on the target do not see aborted transactions.
            PartitionReader(target, plan.target, flow.copy_settings, read_committed=True),
            Where(flow=name, topic=plan.source.topic, partition=plan.source.partition),
            target,
            flow.copy_settings.retry_max_seconds,
        )

    async def match(self, skipped: Sequence[tuple[int, int]] | None, advance: Advance) -> LogMatch:
        """Read the logs and match their records.

        Raises:
            MirrorError: a log cannot be read, or they do not match.
        """
        try:
            return await self._match(skipped, advance)
        except MismatchError as error:
            raise TargetDivergedError(
                f"{self.plan.target} offset {error.target_offset} does not match source offset "
                f"{error.source_offset}, nor any offset near it: the map cannot be derived from the logs.",
                where=replace(self.where, offset=error.source_offset),
                action="Another producer wrote to the target, compaction removed too many records, or MirrorMaker 2 "
                f"copied more than {LOOKBACK:,} records again after a crash. The ledger is unchanged.",
            ) from error
        except (RecordError, CodecError) as error:
            raise CorruptBatchError(
                f"the logs cannot be compared: {error}.",
                where=self.where,
                action="Compare the replicas of both partitions (kafka-dump-log).",
            ) from error

    async def _match(self, skipped: Sequence[tuple[int, int]] | None, advance: Advance) -> LogMatch:
        plan = self.plan
        await until_stable(
            self.client,
            plan.target,
            self.target,
            upto=plan.target_end,
            retry_seconds=self.retry_seconds,
            where=self.where,
        )
        return await match_logs(plan, self.source, _Copied(self.target, self.where.flow or ""), skipped, advance)


class _Copied:
    """A target's log without the tombstones that the flow has written itself."""

    def __init__(self, log: LogReader, flow: str) -> None:
        self._log = log
        self._flow = flow

    async def read(self, offset: int) -> Sequence[Span]:
        return hide_own_deletions(await self._log.read(offset), self._flow)


class LogReader(Protocol):
    """One log, a fetch at a time."""

    async def read(self, offset: int) -> Sequence[Span]:
        """Return the spans from `offset` on; empty at the end of the log."""
        ...


async def match_logs(
    plan: RebuildPlan,
    source: LogReader,
    target: LogReader,
    skipped: Sequence[tuple[int, int]] | None,
    advance: Advance,
) -> LogMatch:
    """Match the records of both logs, and start again if a broker compacts one of them meanwhile.

    If they do not match, they are read once more: the target may have records twice, which MM2 copied after a crash.

    Raises:
        MismatchError: the logs do not match although neither of them changes.
        TransientError: a log changes between all readings.
    """
    shapes, may_repeat = await _shapes(plan, source, target, advance), False
    for _ in range(_READINGS):
        matcher = LogMatcher(*shapes, certain_end=plan.certain_end, skipped=skipped, may_repeat=may_repeat)
        mismatch: MismatchError | None = None
        try:
            await _walk(matcher, source, target, advance)
            match = matcher.match()
            if matcher.as_shaped:
                return match
        except MismatchError as error:
            mismatch = error
        before, shapes = shapes, await _shapes(plan, source, target, advance)
        if mismatch is not None and shapes == before:
            if may_repeat:
                raise mismatch
            may_repeat = True
    raise TransientError(
        f"the brokers deleted records of {plan.source} or {plan.target} during each of {_READINGS} reads, so the "
        "logs cannot be compared. The ledger is unchanged.",
        action="Run the command again after the log cleaner has caught up.",
    )


async def _walk(matcher: LogMatcher, source: LogReader, target: LogReader, advance: Advance) -> None:
    while not matcher.is_finished:
        before = matcher.source_offset + matcher.target_offset
        if matcher.needs_target:
            matcher.feed_target(await target.read(matcher.target_offset))
        if matcher.needs_source:
            matcher.feed_source(await source.read(matcher.source_offset))
        advance(matcher.source_offset + matcher.target_offset - before)
        matcher.walk()


async def _shapes(
    plan: RebuildPlan, source: LogReader, target: LogReader, advance: Advance
) -> tuple[LogShape, LogShape]:
    return (
        await _shape(LogShape(plan.source_start, plan.source_end), source, advance),
        await _shape(LogShape(plan.target_start, plan.target_end), target, advance),
    )


async def _shape(shape: LogShape, log: LogReader, advance: Advance) -> LogShape:
    offset = shape.start
    while offset < shape.end:
        spans = [each for each in await log.read(offset) if each.next_offset > offset]
        if not spans:
            return shape.at_end(offset)
        shape = shape.with_spans(spans, offset)
        read_to = min(spans[-1].next_offset, shape.end)
        advance(read_to - offset)
        offset = read_to
    return shape


def _stored_runs(flow: FlowConfig, ledger: Ledger, source: TopicPartition) -> RunColumns:
    try:
        return RunColumns.of_segments(ledger.segments(str(flow.flow), *source))
    except MirrorError:
        # The map is damaged: that is what a rebuild is for.
        return RunColumns.of(())


def _with_older(known: RunColumns, columns: RunColumns) -> RunColumns:
    if not len(columns):
        return known
    older = known.before(source=int(columns.source_first[0]), target=int(columns.target_first[0]))
    return RunColumns.join([older, columns])


def _rows_by_direction(
    flow: FlowConfig, source: TopicPartition, columns: RunColumns, parts: Sequence[MapPart], run_id: str
) -> list[SegmentRow]:
    """The rows of a map, each still with the flow that has copied it."""
    if not parts:
        return _rows(flow, source, columns, run_id)
    rows: list[SegmentRow] = []
    for part, behind in with_ends(parts):
        inside = columns
        if behind is not None:
            inside = columns.before(source=behind.source_first, target=behind.target_first)
            columns = columns.behind(source=behind.source_first, target=behind.target_first)
        rows += _rows(flow, source, inside, run_id_in(part, run_id))
    return rows


def _rows(flow: FlowConfig, source: TopicPartition, columns: RunColumns, run_id: str) -> list[SegmentRow]:
    rows = []
    for start in range(0, len(columns), _RUNS_PER_ROW):
        part = columns.part(start, start + _RUNS_PER_ROW)
        rows.append(
            SegmentRow(
                flow=str(flow.flow),
                topic=source.topic,
                partition=source.partition,
                source_first=int(part.source_first[0]),
                source_next=int(part.source_next[-1]),
                target_first=int(part.target_first[0]),
                target_next=int(part.target_next[-1]),
                records=part.records,
                runs=None if len(part) == 1 else part.encode(),
                run_id=run_id,
            )
        )
    return rows
