"""What is compared of records that transforms send elsewhere, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import TransientError
from mirror_lib.features.transforms.model import ColumnExpressions, Transform, TransformChain
from mirror_lib.features.transforms.tables import RoutedRangeRow
from mirror_lib.features.verify.findings import DifferenceKind, RoutedVerdict, Stopped, Verdict, VerifiedMark
from mirror_lib.features.verify.model import (
    UNEXPECTED,
    Budget,
    KnownGap,
    Obstacle,
    Share,
    VerifyFacts,
    VerifyJob,
    VerifyMode,
    VerifyPlan,
)
from mirror_lib.features.verify.planning.by_transform_chain import for_second_read
from mirror_lib.features.verify.planning.plan import plan_verification
from mirror_lib.features.verify.planning.routed_plan import RoutedFacts, RoutedTarget, left_over, together
from mirror_lib.features.verify.routed.findings import Place, RoutedFindings, TargetDigests
from mirror_lib.features.verify.routed.judge import judge_routed
from mirror_lib.features.verify.routed.multiset import Multiset, record_digests
from mirror_lib.features.verify.routed.routed_rows import FoundRow
from mirror_lib.features.verify.routed.target_digests import DigestsJob
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import verify_facts, verify_job

FLOW = FlowId("A", "B")
AWAY = TransformChain((Transform("away", columns=ColumnExpressions(topic="'payments.de'")),))
HERE, THERE = TopicPartition("A.payments", 0), TopicPartition("payments.de", 0)
KEY = b"any key"


def payments(partition: int = 0, **changes: Any) -> VerifyFacts:
    """A source partition of 100 records, of which the first 60 stay."""
    usual: dict[str, Any] = {
        "runs": (OffsetRun(0, 0, 60),),
        "source_end": 100,
        "target_end": 60,
        "settled": VerifiedMark(100, 60),
        "source_bytes": 100_000,
        "chain": AWAY,
    }
    return verify_facts("payments", partition, **(usual | changes))


def row(source: tuple[int, int], target: tuple[int, int], to: TopicPartition = THERE, **more: Any) -> RoutedRangeRow:
    settings: dict[str, Any] = {
        "flow": "A->B",
        "target_topic": to.topic,
        "target_partition": to.partition,
        "topic": "payments",
        "partition": 0,
        "own": to.topic == "A.payments",
        "source_first": source[0],
        "source_next": source[1],
        "target_first": target[0],
        "target_next": target[1],
        "records": target[1] - target[0],
        "run_id": "r1",
    }
    return RoutedRangeRow(**{**settings, **more})


#: 60 records stayed, 40 were sent away.
ROWS = (row((0, 100), (0, 60), HERE), row((0, 100), (0, 40)))
TWO_STRETCHES = (ROWS[0], row((0, 30), (0, 10)), row((30, 100), (10, 40), range_number=1))


def routed(rows: Sequence[RoutedRangeRow] = ROWS, *, start: int = 0, end: int = 40, **more: Any) -> RoutedFacts:
    target = RoutedTarget(start=start, end=end)
    return RoutedFacts(rows=tuple(rows), targets={THERE: target}, copied_to=frozenset({"A.payments"}), **more)


def plan(
    *facts: VerifyFacts, of: RoutedFacts | None = None, mode: VerifyMode = VerifyMode.FULL, **more: Any
) -> VerifyPlan:
    return plan_verification(FLOW, facts or (payments(),), mode=mode, routed=of or routed(), **more)


def reasons(found: VerifyPlan) -> list[str]:
    (check,) = found.routed.checks
    return [each.reason for each in check.obstacles]


# ---------------------------------------------------------------- what is compared


def test_all_that_was_sent_there_is_compared_and_nothing_may_stand_behind_it() -> None:
    found = plan(of=routed(end=45))

    (check,) = found.routed.checks
    assert (check.target, check.sources, check.outside) == (THERE, (TopicPartition("payments", 0),), ((40, 45),))
    (span,) = check.spans
    assert (span.target_first, span.target_next) == (0, 40)
    assert span.shares == (Share(TopicPartition("payments", 0), 0, 100),)
    # The own target is read for it anyway.
    assert [len(each.ranges) for each in found.partitions] == [1]


def test_what_was_sent_away_before_the_first_record_that_stayed_is_read_too() -> None:
    (check,) = plan(payments(runs=(OffsetRun(20, 0, 60),))).partitions

    assert [(each.source_first, each.source_next, each.routed_only) for each in check.ranges] == [
        (0, 20, True),
        (20, 100, False),
    ]


def test_what_stands_behind_is_not_looked_at_while_a_run_writes_or_where_others_have_written_before() -> None:
    late = (ROWS[0], row((0, 100), (5, 45)))

    for of in (routed(end=45, writing=True), routed(late, end=50)):
        (check,) = plan(of=of).routed.checks
        assert check.outside == ()


def test_behind_an_interrupted_run_only_that_is_compared_of_which_it_is_known_where_all_went() -> None:
    """Else it would count as verified though nobody has looked at what was sent elsewhere."""
    interrupted = payments(
        runs=(OffsetRun(0, 0, 60), OffsetRun(150, 60, 30)), source_end=200, settled=None, target_end=90
    )

    (check,) = plan(interrupted, of=routed(writing=True)).partitions

    assert [(each.source_first, each.source_next) for each in check.ranges] == [(0, 60), (60, 100)]


def test_what_stands_between_two_runs_is_looked_at() -> None:
    rows = (ROWS[0], row((0, 50), (0, 20)), row((50, 100), (22, 40), range_number=1))

    (check,) = plan(of=routed(rows)).routed.checks

    assert check.outside == ((20, 22),)
    assert [(each.target_first, each.target_next) for each in check.spans] == [(0, 20), (22, 40)]


def test_recent_compares_whole_stretches_that_hold_something_new() -> None:
    old = payments(verified=VerifiedMark(80, 60))

    found = plan(old, of=routed(TWO_STRETCHES), mode=VerifyMode.RECENT)

    (check,) = found.routed.checks
    assert [(each.target_first, each.target_next) for each in check.spans] == [(10, 40)]
    (read,) = found.partitions
    assert [(each.source_first, each.source_next, each.routed_only) for each in read.ranges] == [
        (30, 80, True),
        (80, 100, False),
    ]


def test_another_source_partition_that_rests_is_read_where_its_records_stand_among_new_ones() -> None:
    rows = (
        *ROWS,
        row((0, 100), (5, 30), partition=1),
        row((0, 100), (0, 60), TopicPartition("A.payments", 1), partition=1),
    )
    resting = payments(1, verified=VerifiedMark(100, 60))

    found = plan(payments(), resting, of=routed(rows), mode=VerifyMode.RECENT)

    read = {check.source.partition: check for check in found.partitions}
    assert read[1].routed_only
    assert [(each.source_first, each.source_next) for each in read[1].ranges] == [(0, 100)]
    assert len(found.confirmed) == 1


def test_what_cannot_be_told_is_said() -> None:
    other = TransformChain((Transform("other", filter="true"),))
    truncated = payments(known_gaps=(KnownGap(10, 20, "source-truncated"),))
    not_selected = routed((*ROWS, row((0, 9), (30, 45), topic="orders")))
    missing = RoutedTarget(obstacle=Obstacle("topic-missing", "it is gone."))

    for name, facts, of, reason in (
        ("source expired", payments(source_start=10), routed(), "expired"),
        ("target expired", payments(), routed(start=10), "expired"),
        ("source ends before", payments(source_end=90, settled=None), routed(), "source-truncated"),
        ("source was truncated", truncated, routed(), "source-truncated"),
        ("another flow", payments(), routed(shared=frozenset({THERE})), "routed"),
        ("another topic", payments(), replace(routed(), copied_to=frozenset({"payments.de"})), "routed"),
        ("the transform is gone", payments(chain=other), routed(), "routed"),
        ("the source partition is unverifiable", payments(runs=(), settled=None), routed(), "no-map"),
        ("a topic that is not selected", payments(), not_selected, "source-not-verified"),
        ("a target that cannot be asked", payments(), replace(routed(), targets={THERE: missing}), "topic-missing"),
    ):
        found = plan(facts, of=of)
        assert reasons(found) == [reason], name
        assert found.routed.checks[0].spans == (), name
        (verdict,) = judged(found, RoutedFindings(), {})
        assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, reason), name

    sample = plan(mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=1_000))
    assert reasons(sample) == ["sample"]
    assert sample.routed.checks[0].spans == ()


def test_what_one_side_does_not_hold_any_more_is_counted_and_the_rest_compared() -> None:
    for facts, start in ((payments(source_start=30), 0), (payments(), 10)):
        of = routed(TWO_STRETCHES, start=start)
        (check,) = plan(facts, of=of).routed.checks
        assert (check.expired, check.obstacles) == (10, ())
        assert [(each.target_first, each.target_next) for each in check.spans] == [(10, 40)]


def test_a_partition_that_others_send_records_to_is_compared_by_both_if_the_ledger_knows_what_is_its_own() -> None:
    rows = (
        row((0, 100), (0, 90), HERE),
        row((0, 100), (0, 50), TopicPartition("A.payments", 1), partition=1),
        row((0, 100), (10, 100), HERE, partition=1, own=False),
    )
    of = RoutedFacts(rows=rows, targets={HERE: RoutedTarget(end=100)}, copied_to=frozenset({"A.payments"}))

    found = plan(payments(shared_target=True), payments(1), of=of)

    (check,) = found.routed.checks
    assert (check.target, check.obstacles) == (HERE, ())
    assert {share.source.partition for share in check.spans[0].shares} == {0, 1}


@given(
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=12),
)
def test_ranges_in_different_groups_never_overlap_and_none_is_lost(spans: list[tuple[int, int]]) -> None:
    rows = [row((number, number + 1), (first, first + width), records=0) for number, (first, width) in enumerate(spans)]

    groups = list(together(rows))

    assert sorted(each.source_first for group in groups for each in group.rows) == list(range(len(spans)))
    for before, after in pairwise(groups):
        assert before.next <= after.first
    for group in groups:
        assert group.first == min(each.target_first for each in group.rows)
        assert group.next == max(each.target_next for each in group.rows)


@given(
    wanted=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=4),
    read=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=4),
)
def test_what_is_left_over_is_what_is_wanted_and_not_read(
    wanted: list[tuple[int, int]], read: list[tuple[int, int]]
) -> None:
    def offsets(ranges: Iterable[tuple[int, int]]) -> set[int]:
        return {offset for first, end in ranges for offset in range(first, end)}

    wants = [(first, first + width) for first, width in wanted]
    reads = [(first, first + width) for first, width in read]

    assert offsets(left_over(wants, reads)) == offsets(wants) - offsets(reads)


# ---------------------------------------------------------------- what is said


def job_of(found: VerifyPlan) -> VerifyJob:
    return verify_job(bins=found.bins, routed=found.routed, digest_key=KEY)


def judged(
    found: VerifyPlan, made: RoutedFindings, logs: Mapping[TopicPartition, TargetDigests]
) -> list[RoutedVerdict]:
    """The verdicts where nobody looks a second time."""
    return judge_routed(job_of(found), made, lambda job: [logs[c.target] for b in job.bins for c in b], lambda _: [])


def digest(value: str) -> bytes:
    return record_digests(KEY, [0], [value.encode()]).tobytes()


def heap(values: Iterable[str]) -> Multiset:
    found = Multiset()
    found.add(record_digests(KEY, [0] * 100_000, [value.encode() for value in values]))
    return found


@dataclass
class Sides:
    """What the source makes for a partition, by the offset of its record, and what stands there, by its offset."""

    made: Sequence[str] = tuple(map(str, range(40)))
    stands: Sequence[str] = tuple(map(str, range(40)))
    strangers: Sequence[int] = ()
    doubtful: Sequence[str] = ()
    unexpected: Sequence[str] = ()
    unknown: int = 0
    looked: list[Mapping[Place, frozenset[bytes]]] = field(default_factory=list)

    def findings(self, plan: VerifyPlan) -> RoutedFindings:
        found = RoutedFindings(made={(THERE, 0): heap(self.made)})
        if self.doubtful:
            found.doubtful[THERE, 0] = heap(self.doubtful)
        if self.unexpected:
            found.made[THERE, UNEXPECTED] = heap(self.unexpected)
        if self.unknown:
            found.unknown[THERE, -3] = self.unknown
        found.read = {
            check.source: [(each.source_first, each.source_next) for each in check.ranges] for check in plan.partitions
        }
        return found

    def read(self, job: DigestsJob) -> list[TargetDigests]:
        if job.wanted:
            places: dict[tuple[int, bytes], list[int]] = {}
            for offset, value in enumerate(self.stands):
                if digest(value) in job.wanted.get((THERE, 0), ()):
                    places.setdefault((0, digest(value)), []).append(offset)
            return [TargetDigests(THERE, places={key: tuple(offsets) for key, offsets in places.items()})]
        return [
            TargetDigests(
                THERE,
                multisets={0: heap(self.stands)},
                unexpected=len(self.strangers),
                unexpected_offsets=tuple(self.strangers),
                read_bytes=7,
            )
        ]

    def find(self, wanted: Mapping[Place, frozenset[bytes]]) -> list[FoundRow]:
        self.looked.append(wanted)
        source = TopicPartition("payments", 0)
        return [
            FoundRow(THERE, number, digest(value), source, offset)
            for (_, number), digests in wanted.items()
            for offset, value in enumerate(self.made if number == 0 else self.unexpected)
            if digest(value) in digests
        ]

    def verdict(self, of: VerifyPlan | None = None, found: RoutedFindings | None = None) -> RoutedVerdict:
        of = of or plan()
        (verdict,) = judge_routed(job_of(of), found or self.findings(of), self.read, self.find)
        return verdict


def test_the_same_records_in_another_order_are_equal_and_nobody_looks_again() -> None:
    sides = Sides(stands=[f"{number}" for number in reversed(range(40))])

    verdict = sides.verdict()

    assert (verdict.verdict, verdict.records, verdict.difference_count) == (Verdict.EQUAL, 40, 0)
    assert (verdict.made, verdict.standing, verdict.target_bytes) == (40, 40, 7)
    assert sides.looked == []


FORTY = [str(number) for number in range(40)]


def test_a_record_that_is_missing_or_too_much_is_found_and_told_where() -> None:
    missing, extra = DifferenceKind.MISSING, DifferenceKind.EXTRA
    cases: dict[str, tuple[Sides, list[tuple[DifferenceKind, int | None, int | None]]]] = {
        "deleted": (Sides(stands=FORTY[:39]), [(missing, 39, None)]),
        "duplicated": (Sides(stands=[*FORTY, "7"]), [(extra, 7, 40)]),
        # Each is one difference.
        "three times": (Sides(stands=[*FORTY, "7", "7"]), [(extra, 7, 40), (extra, 7, 41)]),
        "added": (Sides(stands=[*FORTY, "of somebody else"]), [(extra, None, 40)]),
        "changed": (Sides(stands=[*FORTY[:39], "changed"]), [(missing, 39, None), (extra, None, 39)]),
        "where the flow has written nothing": (Sides(strangers=(40, 41)), [(extra, None, 40), (extra, None, 41)]),
        "beside what was left out": (
            Sides(doubtful=("left out", "too large"), stands=[*FORTY[:39], "left out"]),
            [(missing, 39, None)],
        ),
    }
    for name, (sides, expected) in cases.items():
        verdict = sides.verdict()
        assert (verdict.verdict, verdict.difference_count) == (Verdict.DIFFERENT, len(expected)), name
        found = [(each.kind, each.source_offset, each.target_offset) for each in verdict.differences]
        assert found == expected, name

    assert Sides(strangers=(40, 41)).verdict().records == 40


def test_records_that_no_run_has_sent_there_are_missing() -> None:
    verdict = Sides(unexpected=("new", "newer")).verdict()

    assert (verdict.verdict, verdict.difference_count) == (Verdict.DIFFERENT, 2)
    assert {(each.kind, each.source_offset) for each in verdict.differences} == {
        (DifferenceKind.MISSING, 0),
        (DifferenceKind.MISSING, 1),
    }


def test_when_everything_differs_then_counts_are_told() -> None:
    verdict = Sides(made=[f"{n}" for n in range(3_000)], stands=[f"other {n}" for n in range(2_900)]).verdict()

    assert (verdict.verdict, verdict.difference_count, verdict.differences) == (Verdict.DIFFERENT, 100, ())
    assert "3,000 records expected from the source, 2,900 found on the target" in (verdict.detail or "")


def test_a_partition_that_the_ledger_does_not_know_is_judged_by_what_goes_there() -> None:
    elsewhere = TopicPartition("unheard.of", 0)
    unknown = RoutedFindings(unknown={(elsewhere, -3): 5})
    of = plan(of=replace(routed(), rows=()))

    (verdict,) = judged(of, unknown, {})

    assert (verdict.target, verdict.verdict, verdict.reason) == (elsewhere, Verdict.UNVERIFIABLE, "routed")
    assert "5 records" in (verdict.detail or "")


def test_what_was_copied_before_the_ledger_knew_is_no_proof_of_equality() -> None:
    verdict = Sides(unknown=3).verdict()

    assert (verdict.verdict, verdict.reason, verdict.lasting) == (Verdict.UNVERIFIABLE, "routed", True)
    assert verdict.records == 40


def test_what_the_ledger_names_as_left_out_may_stand_there_or_not() -> None:
    for stands in (FORTY, [*FORTY, "left out"]):
        assert Sides(doubtful=("left out", "too large"), stands=stands).verdict().verdict is Verdict.EQUAL


def test_what_compaction_may_have_removed_is_no_difference() -> None:
    for source, target, stands, verdict in (
        (False, True, FORTY[:30], Verdict.EQUAL),
        (False, True, [*FORTY, "extra"], Verdict.DIFFERENT),
        (True, False, [*FORTY, "of a record that is gone"], Verdict.EQUAL),
        (True, False, FORTY[:30], Verdict.DIFFERENT),
        (False, True, ["0"], Verdict.EQUAL),
    ):
        of = plan(payments(source_compacted=source))
        (check,) = of.routed.checks
        of = replace(of, routed=replace(of.routed, checks=(replace(check, target_compacted=target),)))

        found = Sides(stands=stands).verdict(of)

        assert found.verdict is verdict, stands
        assert verdict is Verdict.DIFFERENT or found.compacted == abs(40 - len(stands)), stands


def test_too_much_that_compaction_may_have_removed_cannot_be_told() -> None:
    of = plan(payments(source_compacted=True))

    verdict = Sides(stands=[*map(str, range(2_000))]).verdict(of)

    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "compacted")


def test_where_the_source_was_not_read_to_the_end_then_it_is_not_equal() -> None:
    of = plan()
    sides = Sides()
    stopped, failed = sides.findings(of), sides.findings(of)
    stopped.read = {TopicPartition("payments", 0): [(0, 99)]}
    stopped.stopped[TopicPartition("payments", 0)] = Stopped.BYTES
    failed.errors[TopicPartition("payments", 0)] = TransientError("no answer.")

    assert (sides.verdict(of, stopped).verdict, sides.verdict(of, stopped).reason) == (Verdict.UNVERIFIABLE, "budget")
    verdict = sides.verdict(of, failed)
    assert (verdict.verdict, verdict.reason, verdict.lasting) == (Verdict.UNVERIFIABLE, "transient", False)


def test_where_the_target_could_not_be_read_then_it_is_not_equal() -> None:
    of = plan()
    for standing, reason in (
        (TargetDigests(THERE, error=TransientError("no answer.")), "transient"),
        (TargetDigests(THERE, times_replaced=True), "timestamps"),
        (TargetDigests(THERE, log_start=3), "expired"),
    ):
        (verdict,) = judged(of, Sides().findings(of), {THERE: standing})
        assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, reason)


@given(
    cuts=st.lists(st.integers(0, 100), max_size=4),
    lost=st.one_of(st.none(), st.integers(0, 99)),
)
def test_a_share_has_been_read_only_if_every_offset_of_it_was(cuts: list[int], lost: int | None) -> None:
    source = TopicPartition("payments", 0)
    edges = sorted({0, *cuts, 100})
    parts = list(pairwise(edges))
    if lost is not None:
        parts = [(first, end) for first, end in parts if not first <= lost < end]

    assert RoutedFindings(read={source: parts[::-1]}).has_read(Share(source, 0, 100)) is (lost is None)


def test_findings_of_several_tasks_add_up() -> None:
    found = RoutedFindings()
    for values in (("a", "b"), ("b",)):
        found.take(RoutedFindings(made={(THERE, 0): heap(values)}, unknown={(THERE, -3): 2}))

    assert found.made[THERE, 0].same_as(heap(["b", "b", "a"]))
    assert found.unknown == {(THERE, -3): 4}


def test_the_second_look_reads_only_what_may_go_where_something_differs() -> None:
    job = job_of(plan(of=routed(TWO_STRETCHES)))

    again = for_second_read(job, {(THERE, 1)})

    ((check,),) = again.bins
    assert [(each.source_first, each.source_next, each.routed_only) for each in check.ranges] == [(30, 100, True)]


def test_the_plan_tells_what_is_compared_of_it() -> None:
    (told,) = plan().to_dict()["routed"]

    assert told == {"topic": "payments.de", "partition": 0, "ranges": [[0, 40]], "records": 40, "obstacles": []}
