"""Plan what is compared of target partitions that transforms send records to. Pure: facts in, plan out.

The ledger's ranges separate the records of different runs. Ranges that overlap on the target hold records of several
source partitions, or of several runs, in any order: they can only be compared together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mirror_lib.features.transforms.tables import RoutedRangeRow
from mirror_lib.features.verify.findings import PartitionVerdict
from mirror_lib.features.verify.model import (
    NOT_COMPARED,
    KnownRoute,
    Obstacle,
    RoutedCheck,
    RoutedPlan,
    RoutedSpan,
    Share,
    VerifyFacts,
    VerifyMode,
)
from mirror_lib.features.verify.planning.chains import ROUTED
from mirror_lib.offsets.ranges import unite
from mirror_lib.topology.names import TopicPartition

#: Stable codes of why a target partition is unverifiable.
EXPIRED, SAMPLED, UNSELECTED = "expired", "sample", "source-not-verified"


@dataclass(frozen=True, slots=True)
class RoutedTarget:
    """Facts of the target cluster about a partition that transforms send records to.

    Attributes:
        start: of its log.
        end: where a reader of committed records would stop.
        obstacle: why it cannot be verified.
    """

    start: int = 0
    end: int = 0
    compacted: bool = False
    timed: bool = True
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedFacts:
    """Facts of the ledger and the target about records that transforms send to other partitions, before they are read.

    Attributes:
        rows: of the ledger.
        targets: of every target partition of them.
        copied_to: topics that the flow copies topics to: their partitions hold other records too.
        shared: partitions that other flows send records to as well.
        writing: True if a run may be writing there, or has written since the ledger was read.
    """

    rows: tuple[RoutedRangeRow, ...] = ()
    targets: Mapping[TopicPartition, RoutedTarget] = field(default_factory=dict)
    copied_to: frozenset[str] = frozenset()
    shared: frozenset[TopicPartition] = frozenset()
    writing: bool = False
    _ends: dict[TopicPartition, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note up to where each source partition is known."""
        ends: dict[TopicPartition, int] = {}
        for row in self.rows:
            if row.own:
                ends[source_of(row)] = max(ends.get(source_of(row), 0), row.source_next)
        object.__setattr__(self, "_ends", ends)

    def routed_targets(self) -> frozenset[TopicPartition]:
        """The target partitions that records of other partitions than their own are sent to."""
        return frozenset(target_of(row) for row in self.rows if not row.own)

    def known_to(self, source: TopicPartition) -> int | None:
        """Return up to which source offset the routes of a partition's records are known; None if they never are."""
        return self._ends.get(source)


NO_ROUTED_FACTS = RoutedFacts()


class _Together(NamedTuple):
    """Ranges that can only be compared together."""

    first: int
    next: int
    rows: tuple[RoutedRangeRow, ...]

    @property
    def shares(self) -> tuple[Share, ...]:
        return tuple(share_of(row) for row in self.rows if row.source_first < row.source_next)

    @property
    def records(self) -> int:
        return sum(row.records for row in self.rows)


def plan_routed(
    routed: RoutedFacts, facts: Sequence[VerifyFacts], *, mode: VerifyMode, impossible: Iterable[PartitionVerdict]
) -> RoutedPlan:
    """Decide what is compared of each target partition that records are sent to.

    Args:
        facts: of the source partitions of this verification.
        impossible: source partitions that cannot be verified.
    """
    by_source = {fact.source: fact for fact in facts}
    why_not = {verdict.source: verdict for verdict in impossible}
    met = routed.routed_targets()
    by_target: dict[TopicPartition, list[RoutedRangeRow]] = {}
    for row in routed.rows:
        if target_of(row) in met:
            by_target.setdefault(target_of(row), []).append(row)
    # A selection of topics concerns only the records that they send.
    selected = {*by_source, *why_not}
    planned = [
        _Target(target, rows, routed, by_source, why_not).plan(mode)
        for target, rows in sorted(by_target.items())
        if any(source_of(row) in selected for row in rows if not row.own)
    ]
    return RoutedPlan(
        checks=tuple(check for check, _ in planned),
        known=tuple(route for _, routes in planned for route in routes),
        covered=tuple(share_of(row) for row in routed.rows if row.own),
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """One target partition."""

    _target: TopicPartition
    _rows: Sequence[RoutedRangeRow]
    _routed: RoutedFacts
    _facts: Mapping[TopicPartition, VerifyFacts]
    _why_not: Mapping[TopicPartition, PartitionVerdict]

    @property
    def _found(self) -> RoutedTarget:
        return self._routed.targets.get(self._target, RoutedTarget())

    def plan(self, mode: VerifyMode) -> tuple[RoutedCheck, list[KnownRoute]]:
        groups = list(together(self._rows))
        whole = tuple(self._obstacles(mode))
        obstacles = list(whole)
        spans: list[RoutedSpan] = []
        routes: list[KnownRoute] = []
        expired = 0
        for number, group in enumerate(groups):
            compared = False
            if not whole:
                if self._is_expired(group):
                    expired += group.records
                elif mode is not VerifyMode.RECENT or not self._is_verified(group):
                    obstacle = self._obstacle(group)
                    if obstacle is None:
                        compared = True
                    else:
                        obstacles.append(obstacle)
            if compared:
                spans.append(RoutedSpan(number, group.first, group.next, group.shares, group.records))
            span = number if compared else NOT_COMPARED
            routes += [KnownRoute(share, self._target, span) for share in group.shares]
        sources = sorted({source_of(row) for row in self._rows})
        held = [self._facts[source] for source in sources if source in self._facts]
        check = RoutedCheck(
            target=self._target,
            spans=tuple(spans),
            sources=tuple(sources),
            outside=() if whole else tuple(self._outside(groups)),
            log_end=self._found.end,
            timed=self._found.timed,
            source_compacted=any(fact.source_compacted for fact in held),
            target_compacted=self._found.compacted,
            expired=expired,
            # The same may hold for many ranges.
            obstacles=tuple(dict.fromkeys(obstacles)),
        )
        return check, routes

    def _obstacles(self, mode: VerifyMode) -> Iterator[Obstacle]:
        """Yield what prevents comparing the whole partition."""
        if self._found.obstacle is not None:
            yield self._found.obstacle
        if mode is VerifyMode.SAMPLE:
            yield Obstacle(
                SAMPLED,
                "a sample contains only a part of the records routed to it: use --mode full or recent.",
                lasting=True,
            )
        if self._target in self._routed.shared:
            yield Obstacle(
                ROUTED,
                "another flow or a backfill writes to it too, so it contains more than the records of this flow.",
                lasting=True,
            )
        known = {source_of(row) for row in self._rows if row.own}
        owners = {fact.source for fact in self._facts.values() if fact.target == self._target}
        if self._target.topic in self._routed.copied_to and (not known or owners - known):
            yield Obstacle(
                ROUTED,
                "another topic is copied to it too, and the ledger does not contain the offsets of its records "
                "among the routed records.",
                lasting=True,
            )

    def _obstacle(self, group: _Together) -> Obstacle | None:
        """Return what prevents comparing some ranges."""
        for share in group.shares:
            source = share.source
            verdict, fact = self._why_not.get(source), self._facts.get(source)
            if verdict is not None:
                return Obstacle(
                    verdict.reason or ROUTED, f"of {_name(source)}, whose records are routed to it: {verdict.detail}"
                )
            if fact is None:
                return Obstacle(
                    UNSELECTED,
                    f"records of {_name(source)} are routed to it too, but {_name(source)} is not part of this "
                    "verification.",
                )
            if not fact.chain.may_route:
                return Obstacle(
                    ROUTED,
                    f"the transforms that routed records of {source.topic} to it are no longer in the configuration.",
                    lasting=True,
                )
            if share.source_first < fact.source_start:
                return _cut_by_retention(group, f"{_name(source)} starts at offset {fact.source_start:,} on the source")
            if share.source_next > fact.source_end or any(
                gap.rewritten and gap.first_offset < share.source_next and share.source_first < gap.next_offset
                for gap in fact.known_gaps
            ):
                return Obstacle(
                    "source-truncated",
                    f"{_name(source)} no longer has the records that were routed to it: its log was truncated.",
                    lasting=True,
                )
        if group.first < self._found.start and group.records:
            return _cut_by_retention(group, f"the target starts at offset {self._found.start:,}")
        return None

    def _is_expired(self, group: _Together) -> bool:
        """Return True if one side holds nothing of it any more."""
        if group.records and group.next <= self._found.start:
            return True
        facts = [(self._facts.get(share.source), share) for share in group.shares]
        return bool(facts) and all(fact is not None and share.source_next <= fact.source_start for fact, share in facts)

    def _is_verified(self, group: _Together) -> bool:
        """Return True if it was found equal before."""
        marks = [(self._facts.get(share.source), share) for share in group.shares]
        return all(
            fact is not None and fact.verified is not None and share.source_next <= fact.verified.source_next
            for fact, share in marks
        )

    def _outside(self, groups: Sequence[_Together]) -> Iterator[tuple[int, int]]:
        """Yield ranges without known writers, by the ledger; none if other writers are possible.

        The partition is taken to be the flow's own if it was empty when the flow first sent records there.
        """
        if self._target.topic in self._routed.copied_to or not groups or groups[0].first != 0:
            return
        reached = max(groups[0].next, self._found.start)
        for group in groups[1:]:
            if group.first > reached:
                yield reached, group.first
            reached = max(reached, group.next)
        if reached < self._found.end and not self._routed.writing:
            yield reached, self._found.end


def together(rows: Iterable[RoutedRangeRow]) -> Iterator[_Together]:
    """Yield ranges of one target partition in groups that do not overlap there, ascending.

    A range that sent nothing there belongs to the group around it, or before it.
    """
    group: list[RoutedRangeRow] = []
    first = reached = 0
    for row in sorted(rows, key=lambda row: (row.target_first, row.target_next)):
        empty = row.target_first == row.target_next
        if group and (row.target_first < reached or (row.target_first == reached and empty)):
            group.append(row)
            reached = max(reached, row.target_next)
            continue
        if group:
            yield _Together(first, reached, tuple(group))
        group, first, reached = [row], row.target_first, row.target_next
    if group:
        yield _Together(first, reached, tuple(group))


def needed_shares(plan: RoutedPlan) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Return the source offsets that must be read for the comparison, ascending, without overlaps."""
    wanted: dict[TopicPartition, list[tuple[int, int]]] = {}
    for check in plan.checks:
        for span in check.spans:
            for share in span.shares:
                wanted.setdefault(share.source, []).append((share.source_first, share.source_next))
    return {source: unite(ranges) for source, ranges in wanted.items()}


def left_over(wanted: Sequence[tuple[int, int]], read: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of some ranges that lie in none of the others."""
    left = list(wanted)
    for first, end in read:
        left = [
            part
            for begin, stop in left
            for part in ((begin, min(stop, first)), (max(begin, end), stop))
            if part[0] < part[1]
        ]
    return sorted(set(left))


def _cut_by_retention(group: _Together, what: str) -> Obstacle:
    return Obstacle(
        EXPIRED,
        f"retention removed a part of offsets {group.first:,} to {group.next:,}, so the expected content of the rest "
        f"is unknown: {what}.",
        lasting=True,
    )


def _name(source: TopicPartition) -> str:
    return f"{source.topic}-{source.partition}"


def share_of(row: RoutedRangeRow) -> Share:
    """Return the source's side of a row."""
    return Share(source_of(row), row.source_first, row.source_next)


def source_of(row: RoutedRangeRow) -> TopicPartition:
    """Return the source partition of a row."""
    return TopicPartition(row.topic, row.partition)


def target_of(row: RoutedRangeRow) -> TopicPartition:
    """Return the target partition of a row."""
    return TopicPartition(row.target_topic, row.target_partition)
