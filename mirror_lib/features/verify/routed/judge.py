"""Verdicts for target partitions, from the records that the source makes and those that the target holds.

Both sides are multiset digests. If they are equal, the partition is. If not, and few records differ, the digests
themselves yield the digests of these records; then both sides are read once more to find their offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mirror_lib.features.verify.findings import DifferenceKind, RoutedDifference, RoutedVerdict, Verdict
from mirror_lib.features.verify.model import UNEXPECTED, Obstacle, RoutedCheck, RoutedSpan, VerifyJob
from mirror_lib.features.verify.planning.chains import ROUTED
from mirror_lib.features.verify.planning.routed_plan import EXPIRED
from mirror_lib.features.verify.routed.findings import Place, RoutedFindings, TargetDigests
from mirror_lib.features.verify.routed.multiset import Multiset, Surplus
from mirror_lib.features.verify.routed.routed_rows import FoundRow
from mirror_lib.features.verify.routed.target_digests import DigestsJob, bins_of
from mirror_lib.topology.names import TopicPartition

#: Reads target partitions: a task for each bin.
ReadDigests = Callable[[DigestsJob], Iterable[TargetDigests]]
#: Makes rows of the source again, and returns the records whose rows have the searched digests.
FindRows = Callable[[Mapping[Place, frozenset[bytes]]], Iterable[FoundRow]]
#: Digests that are searched in one partition: a few show the problem.
_LOOKED_FOR = 20


def judge_routed(job: VerifyJob, made: RoutedFindings, read: ReadDigests, find: FindRows) -> list[RoutedVerdict]:
    """Compare the records made for other partitions with those on the target.

    Args:
        made: by all tasks.

    Raises:
        MirrorError: a Spark job failed.
    """
    checks = {check.target: check for check in job.routed.checks}
    for target, _ in (*made.made, *made.unknown):
        # The ledger has no entry for it.
        checks.setdefault(target, RoutedCheck(target=target))
    if not checks:
        return []
    # If the source was not read to the end there is nothing to compare with.
    readable = [_readable(check, made) for check in checks.values()]
    reading = DigestsJob(
        flow=str(job.flow),
        target=job.target,
        bins=bins_of(readable, len(job.bins)),
        key=job.digest_key,
        retry_seconds=job.retry_seconds,
        ends_at=job.ends_at,
    )
    digests_by_target = {each.target: each for each in read(reading)} if reading.bins else {}
    accounts = [
        _Account(check, made, digests_by_target.get(target, TargetDigests(target)), job.keep_differences)
        for target, check in sorted(checks.items())
    ]
    for account in accounts:
        account.compare()
    wanted = {place: digests for account in accounts for place, digests in account.wanted_digests().items()}
    if wanted:
        _look_again(reading, wanted, accounts, read, find)
    return [account.verdict() for account in accounts if account.says_something]


def _look_again(
    reading: DigestsJob,
    wanted: Mapping[Place, frozenset[bytes]],
    accounts: Sequence[_Account],
    read: ReadDigests,
    find: FindRows,
) -> None:
    targets = {target for target, _ in wanted}
    checks = [account.check for account in accounts if account.check.target in targets and account.check.spans]
    rows: dict[tuple[TopicPartition, int, bytes], list[FoundRow]] = {}
    for row in find(wanted):
        rows.setdefault((row.target, row.span, row.digest), []).append(row)
    again = DigestsJob(
        flow=reading.flow,
        target=reading.target,
        bins=bins_of(checks, len(reading.bins)),
        key=reading.key,
        retry_seconds=reading.retry_seconds,
        wanted=wanted,
    )
    digests_by_target = {each.target: each for each in read(again)} if again.bins else {}
    for account in accounts:
        target = account.check.target
        places = digests_by_target[target].places if target in digests_by_target else {}
        account.locate(places, {key[1:]: found for key, found in rows.items() if key[0] == target})


def _readable(check: RoutedCheck, made: RoutedFindings) -> RoutedCheck:
    return replace(check, spans=tuple(each for each in check.spans if _unread(each, made) is None))


def _unread(span: RoutedSpan, made: RoutedFindings) -> Obstacle | None:
    """Return why the records that the source makes for a span are not completely known."""
    for share in span.shares:
        name = f"{share.source.topic}-{share.source.partition}"
        error, stopped = made.errors.get(share.source), made.stopped.get(share.source)
        if error is not None:
            return Obstacle(error.reason, f"of {name}, whose records are routed to it: {error}")
        if not made.has_read(share):
            budget = f"the budget of {stopped.value} was used up" if stopped is not None else "a budget stopped it"
            return Obstacle("budget", f"{budget} before all records of {name} that are routed to it were read.")
    return None


@dataclass(slots=True)
class _Unequal:
    """A span whose sides differ."""

    number: int
    #: What the target has more often; None if it is too much to identify.
    surplus: tuple[Surplus, ...] | None


@dataclass(slots=True)
class _Account:
    check: RoutedCheck
    found: RoutedFindings
    digests: TargetDigests
    keep: int
    obstacles: list[Obstacle] = field(default_factory=list)
    records: int = 0
    made: int = 0
    on_target: int = 0
    skipped: int = 0
    compacted: int = 0
    difference_count: int = 0
    unequal: list[_Unequal] = field(default_factory=list)
    differences: list[RoutedDifference] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def compare(self) -> None:
        self.obstacles += self.check.obstacles
        if self.digests.error is not None:
            self.obstacles.append(Obstacle(self.digests.error.reason, str(self.digests.error)))
        elif self.digests.stopped:
            self.obstacles.append(
                Obstacle("budget", "the budget of seconds was used up before the partition was read.")
            )
        elif self.digests.times_replaced:
            self.obstacles.append(
                Obstacle("timestamps", "the broker replaced the timestamps of some of its records.", lasting=True)
            )
        else:
            for span in self.check.spans:
                obstacle = self._obstacle(span)
                if obstacle is None:
                    self._compare(span)
                else:
                    self.obstacles.append(obstacle)
            self._add_unexpected_rows()
        self._add_unexpected()
        unknown = sum(count for (target, _), count in self.found.unknown.items() if target == self.check.target)
        if unknown:
            self.obstacles.append(
                Obstacle(
                    ROUTED,
                    f"{unknown:,} records routed to it were copied before the ledger stored their target.",
                    lasting=True,
                )
            )

    def _obstacle(self, span: RoutedSpan) -> Obstacle | None:
        """Return why one span cannot be compared, though it was planned."""
        if self.digests.log_start > span.target_first:
            return Obstacle(EXPIRED, "retention deleted a part of it during the comparison.")
        return _unread(span, self.found)

    def _compare(self, span: RoutedSpan) -> None:
        place = self.check.target, span.number
        made = self.found.made.get(place, Multiset())
        doubtful = self.found.doubtful.get(place, Multiset())
        found = self.digests.multisets.get(span.number, Multiset())
        self.made += made.count
        self.on_target += found.count
        if found.same_as(made):
            self.records += made.count
            self.skipped += doubtful.count
            return
        if doubtful.count and found.same_as(made.plus(doubtful)):
            self.records += found.count
            return
        difference = found.minus(made)
        surplus = difference.surplus()
        if surplus is not None and doubtful.count:
            surplus = self._without_doubtful(surplus, doubtful)
        if surplus is None:
            self.unequal.append(_Unequal(span.number, None))
            self._too_many(difference.count, made.count, found.count)
            return
        extra = sum(each.times for each in surplus if each.times > 0)
        missing = -sum(each.times for each in surplus if each.times < 0)
        self.records += max(found.count - extra, 0)
        kept = tuple(each for each in surplus if not self._by_compaction(each))
        self.compacted += sum(abs(each.times) for each in surplus if self._by_compaction(each))
        self.difference_count += sum(abs(each.times) for each in kept)
        if kept:
            self.remarks.append(f"{missing:,} records are missing, {extra:,} are extra")
            self.unequal.append(_Unequal(span.number, kept))

    def _by_compaction(self, each: Surplus) -> bool:
        return self.check.target_compacted if each.times < 0 else self.check.source_compacted

    def _without_doubtful(self, surplus: Sequence[Surplus], doubtful: Multiset) -> tuple[Surplus, ...] | None:
        """Drop skipped records that are on the target nevertheless: one of several rows of a record."""
        known = doubtful.surplus()
        if known is None:
            return None
        may_stand = {each.digest: each.times for each in known}
        left = []
        for each in surplus:
            times = each.times - min(max(each.times, 0), may_stand.get(each.digest, 0))
            if times:
                left.append(Surplus(each.digest, times))
        return tuple(left)

    def _too_many(self, excess: int, made: int, found: int) -> None:
        if self.check.source_compacted or self.check.target_compacted:
            self.obstacles.append(
                Obstacle(
                    "compacted",
                    f"{made:,} records expected from the source, {found:,} found on the target: records removed by "
                    "compaction cannot be distinguished from missing or extra records.",
                    lasting=True,
                )
            )
            return
        self.remarks.append(
            f"{made:,} records expected from the source, {found:,} found on the target, too many differences to "
            "list: another producer wrote or deleted records there, or the transform has changed"
        )
        # A lower bound; at least one if the counts are equal but the records are not.
        self.difference_count += max(abs(excess), 1)

    def _add_unexpected_rows(self) -> None:
        if not self.digests.unexpected:
            return
        self.difference_count += self.digests.unexpected
        self.remarks.append(f"{self.digests.unexpected:,} records were found at offsets that the flow did not write")
        self.differences += [
            RoutedDifference(DifferenceKind.EXTRA, target_offset=offset) for offset in self.digests.unexpected_offsets
        ]

    def _add_unexpected(self) -> None:
        multiset = self.found.made.get((self.check.target, UNEXPECTED))
        if multiset is None:
            return
        self.difference_count += multiset.count
        self.made += multiset.count
        self.remarks.append(f"{multiset.count:,} expected records are missing that no run has written, by the ledger")
        self.unequal.append(_Unequal(UNEXPECTED, Multiset().minus(multiset).surplus()))

    @property
    def says_something(self) -> bool:
        """Return True if there was anything to compare: often nothing was added since it was found equal."""
        return bool(self.check.spans or self.check.outside or self.obstacles or self.difference_count)

    def wanted_digests(self) -> dict[Place, frozenset[bytes]]:
        """Return the digests that a second read searches."""
        return {
            (self.check.target, each.number): frozenset(one.digest for one in (each.surplus or ())[:_LOOKED_FOR])
            for each in self.unequal
            if each.surplus
        }

    def locate(
        self,
        places: Mapping[tuple[int, bytes], Sequence[int]],
        rows: Mapping[tuple[int, bytes], Sequence[FoundRow]],
    ) -> None:
        """Add the offsets of the records that differ."""
        for each in self.unequal:
            for one in each.surplus or ():
                self.differences += _locate(
                    one, places.get((each.number, one.digest), ()), rows.get((each.number, one.digest), ())
                )

    def verdict(self) -> RoutedVerdict:
        """Return the verdict on the partition."""
        check, kept = self.check, self.differences[: self.keep]
        verdict, reason, lasting = Verdict.EQUAL, None, False
        details = list(self.remarks)
        senders = {source for target, source in self.found.senders if target == check.target}
        if self.obstacles:
            first = next((each for each in self.obstacles if not each.lasting), self.obstacles[0])
            verdict, reason, lasting = Verdict.UNVERIFIABLE, first.reason, first.lasting
            details += [each.detail.rstrip(".") for each in dict.fromkeys(self.obstacles)][:3]
        if self.difference_count:
            verdict, reason, lasting = Verdict.DIFFERENT, None, False
        return RoutedVerdict(
            target=check.target,
            verdict=verdict,
            sources=tuple(sorted({*check.sources, *senders})),
            reason=reason,
            detail="; ".join(details) + "." if details else None,
            lasting=lasting,
            records=self.records,
            made=self.made,
            standing=self.on_target + self.digests.unexpected,
            compacted=self.compacted,
            expired=check.expired,
            skipped=self.skipped,
            target_bytes=self.digests.read_bytes,
            timestamps_compared=check.timed,
            difference_count=self.difference_count,
            differences=tuple(sorted(kept, key=_place)),
        )


def _place(difference: RoutedDifference) -> tuple[int, int]:
    return difference.target_offset or 0, difference.source_offset or 0


def _locate(one: Surplus, places: Sequence[int], rows: Sequence[FoundRow]) -> Iterator[RoutedDifference]:
    """Yield the differences with offsets. Among identical records it is unknown which is missing or surplus: the last
    are named.
    """
    if one.times > 0:
        row = rows[-1] if rows else None
        offsets: list[int | None] = [*places[-one.times :]] or [None]
        for offset in offsets:
            yield RoutedDifference(
                DifferenceKind.EXTRA,
                row.source if row else None,
                row.offset if row else None,
                offset,
                records=1 if len(offsets) == one.times else one.times,
            )
        return
    lacking = list(rows)[one.times :]
    for each in lacking:
        yield RoutedDifference(DifferenceKind.MISSING, each.source, each.offset)
    if not lacking:
        yield RoutedDifference(DifferenceKind.MISSING, records=-one.times)
