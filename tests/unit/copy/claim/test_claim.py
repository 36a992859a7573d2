"""Opening partitions while others may: of two runs on a target partition one takes over from the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import mirror_lib.copy.claim.claim as opening
from mirror_lib.cluster.admin.client import OffsetFact, OffsetSpec
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.mm2_formats import OffsetSync, RecordFormatError
from mirror_lib.cluster.topics.position_format import OmittedRange, Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionSnapshot, StoredPosition, UnreadablePosition
from mirror_lib.cluster.topics.records import RecordPlace
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.config.model import ExistingTarget, Fencing
from mirror_lib.copy.claim.claim import open_partitions
from mirror_lib.errors import DirtyStartError
from mirror_lib.features.transforms.model import NO_TRANSFORMS
from mirror_lib.planning.model import OpenPartition, PartitionPlan, RunPlan, Takeover
from mirror_lib.topology.names import FlowId, TopicPartition

FLOW = FlowId("A", "B")
FIRST, SECOND, MERGED = (TopicPartition(name, 0) for name in ("first", "second", "merged"))


class FlowOnly:
    """The fields of a flow's configuration that opening reads."""

    flow = FLOW
    fencing = Fencing.TRANSACTIONAL
    existing_target = ExistingTarget.FAIL
    run_lease_seconds = 30.0
    copy_settings = CopySettings()
    transforms = NO_TRANSFORMS
    transactions = False
    emit_offset_syncs_enabled = False


class NoLedger:
    """A ledger that keeps nothing."""

    def save_positions(self, rows: Iterable[object]) -> None:
        pass

    save_claims = save_positions


def closed(source: TopicPartition, target_offset: int, *, run_id: str = "before", **other: Any) -> Position:
    fields = {"state": PositionState.CLOSED, **other}
    return Position(source.topic, source.partition, 9, target_offset=target_offset, run_id=run_id, **fields)


def plan(*pairs: tuple[TopicPartition, TopicPartition]) -> RunPlan:
    partitions = tuple(PartitionPlan(source, target, 10, 20, "id", 1_000_000, 0) for source, target in pairs)
    return RunPlan(FLOW, (partitions,), (), 0)


class Clusters:
    """Both clusters as opening sees them; `log` is the position topic, in which `others` write before and after us."""

    def __init__(
        self,
        *known: Position,
        target_end: int,
        sources: Sequence[TopicPartition],
        before_us: Sequence[Position] = (),
        after_us: Sequence[Position] = (),
        unreadable: Sequence[TopicPartition] = (),
    ) -> None:
        place = RecordPlace(0, 0)
        self.flow = FlowOnly()
        self.positions_at_plan = PositionSnapshot(
            {position.source: StoredPosition(position, place) for position in known},
            {source: UnreadablePosition(source, place, RecordFormatError("not JSON")) for source in unreadable},
            claims={position.source: position.claim or 0 for position in known},
        )
        self.target_data = None
        self.target_admin = self
        self.positions = self
        self.written: list[Position] = []
        self._sources, self._end = sources, target_end
        self._before_us, self._after_us = before_us, after_us

    def sources_of(self, target: TopicPartition) -> Sequence[TopicPartition]:
        return self._sources

    def list_offsets(self, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, OffsetFact]:
        offset = 0 if spec is OffsetSpec.EARLIEST else self._end
        return {partition: OffsetFact(offset=offset) for partition in partitions}

    def write(self, positions: Iterable[Position]) -> None:
        self.written += positions

    def read_since(self, _: PositionSnapshot) -> tuple[StoredPosition, ...]:
        records = (*self._before_us, *self.written, *self._after_us)
        return tuple(StoredPosition(position, RecordPlace(0, 0)) for position in records)


@pytest.fixture(autouse=True)
def identities(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(names: Iterable[TopicPartition], _: object) -> dict[TopicPartition, ProducerIdentity]:
        return {target: ProducerIdentity(1, 0) for target in names}

    monkeypatch.setattr(opening, "_identities", take)


def opened_partitions(
    clusters: Clusters, *sources: TopicPartition
) -> tuple[list[OpenPartition], dict[TopicPartition, Exception]]:
    """The partitions that may be copied, and why the others may not."""
    round_plan = plan(*((source, MERGED) for source in sources))
    bins, problems = open_partitions(FlowOnly(), round_plan, clusters, run_id="ours", ledger=NoLedger())  # type: ignore[arg-type]
    return [each for bin_ in bins for each in bin_], {each.source: each.error for each in problems}


def opened_first(clusters: Clusters) -> OpenPartition:
    """The partition `FIRST`, which nothing keeps from being copied."""
    ((partition,), problems) = opened_partitions(clusters, FIRST)
    assert problems == {}
    return partition


def assert_refused(clusters: Clusters, *sources: TopicPartition) -> dict[TopicPartition, Exception]:
    """None of the partitions may be copied."""
    started, problems = opened_partitions(clusters, *sources)
    assert started == []
    assert {source: type(error) for source, error in problems.items()} == dict.fromkeys(sources, DirtyStartError)
    return problems


def of_merge(*, target_end: int = 40, **others: Sequence[Position]) -> Clusters:
    """A merge of two topics that ended well, unless others wrote since."""
    known = closed(FIRST, 40), closed(SECOND, 30)
    return Clusters(*known, target_end=target_end, sources=[FIRST, SECOND], **others)


def of_first(known: Position | None = None, *, target_end: int = 40, **others: Sequence[Position]) -> Clusters:
    return Clusters(known or closed(FIRST, 40), target_end=target_end, sources=[FIRST], **others)


def of_others(source: TopicPartition, target_offset: int, **fields: Any) -> Position:
    """What another run has claimed."""
    return closed(source, target_offset, run_id="theirs", state=PositionState.OPEN, **fields)


def test_partitions_of_a_merge_that_were_closed_are_opened_together_or_one_topic_alone() -> None:
    for sources in ([FIRST, SECOND], [SECOND]):
        found, problems = opened_partitions(of_merge(), *sources)

        assert ([each.plan.source for each in found], problems) == (sources, {})


def test_an_unreadable_position_of_a_merge_stops_all_of_it() -> None:
    clusters = Clusters(closed(FIRST, 40), target_end=40, sources=[FIRST, SECOND], unreadable=[SECOND])

    assert_refused(clusters, FIRST)

    assert clusters.written == []


def test_a_clean_start_needs_no_take_over() -> None:
    clusters = of_first()

    partition = opened_first(clusters)

    assert partition.takeover is None
    assert (partition.producer_id, partition.epoch, partition.target_offset) == (1, 0, 40)
    (claim,) = clusters.written
    assert (claim.offset, claim.target_offset, claim.state) == (9, 40, PositionState.OPEN)
    assert (claim.producer_id, claim.epoch, claim.run_id) == (1, 0, "ours")


def test_a_claim_keeps_the_leader_epoch_of_the_position() -> None:
    clusters = of_first()
    (planned,) = plan((FIRST, MERGED)).partitions
    round_plan = RunPlan(FLOW, ((replace(planned, leader_epoch=5),),), (), 0)

    open_partitions(FlowOnly(), round_plan, clusters, run_id="ours", ledger=NoLedger())  # type: ignore[arg-type]

    assert [claim.leader_epoch for claim in clusters.written] == [5]


def test_behind_a_first_start_of_another_run_nothing_is_certain() -> None:
    # It may have copied and closed since the plan: whose records those before the end are is not known.
    clusters = Clusters(target_end=40, sources=[FIRST], before_us=[of_others(FIRST, 40)])
    flow = FlowOnly()
    flow.existing_target = ExistingTarget.APPEND

    bins, problems = open_partitions(flow, plan((FIRST, MERGED)), clusters, run_id="ours", ledger=NoLedger())  # type: ignore[arg-type]

    assert [bin_ for bin_ in bins if bin_] == []
    assert isinstance(problems[0].error, DirtyStartError)


def test_a_run_that_opened_before_us_is_taken_over_from() -> None:
    partition = opened_first(of_first(before_us=[of_others(FIRST, 40, producer_id=1, epoch=5)]))

    # What was certain before both lies before the target's end at that time.
    assert partition.takeover == Takeover(10, 40, producer_id=1, epoch=5, lease_seconds=30.0)


def test_an_interrupted_run_is_taken_over_from_its_last_position() -> None:
    clusters = of_first(closed(FIRST, 40, state=PositionState.OPEN, producer_id=1, epoch=5), target_end=55)

    partition = opened_first(clusters)

    assert partition.takeover == Takeover(10, 40, producer_id=1, epoch=5, lease_seconds=30.0)
    (claim,) = clusters.written
    # Until the copy task has looked, only the old pair is certain, and its writer is the one to be fenced.
    assert (claim.offset, claim.target_offset, claim.producer_id, claim.epoch) == (9, 40, 1, 5)


def test_the_claim_on_what_mirror_maker_copied_keeps_its_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_syncs", lambda *_: {FIRST: OffsetSync("first", 0, 4, 70)})
    clusters = of_first(Position("first", 0, 9), target_end=80)

    partition = opened_first(clusters)

    assert partition.takeover == Takeover(4, 70, lease_seconds=30.0)
    (claim,) = clusters.written
    assert (claim.offset, claim.target_offset, claim.producer_id) == (9, None, None)


def test_of_two_claims_with_one_number_the_later_one_takes_the_next() -> None:
    other = of_others(FIRST, 40, producer_id=1, epoch=5, claim=7)
    clusters = of_first(closed(FIRST, 40, claim=6), before_us=[other])

    assert opened_first(clusters).claim == 8
    assert [each.claim for each in clusters.written] == [7, 8]


def test_a_run_that_was_overtaken_and_stores_something_late_is_not_taken_over_from() -> None:
    late = closed(FIRST, 30, run_id="long ago", state=PositionState.OPEN, claim=5)

    assert opened_first(of_first(closed(FIRST, 40, claim=6), before_us=[late])).takeover is None


def test_what_an_interrupted_run_left_out_goes_on_with_the_claim() -> None:
    skipped = (OmittedRange(4, 5, 1, "record-refused"),)
    clusters = of_first(closed(FIRST, 40, state=PositionState.OPEN, skipped=skipped), target_end=43)

    partition = opened_first(clusters)

    assert partition.takeover is not None
    assert partition.takeover.skipped == skipped
    assert [each.skipped for each in clusters.written] == [skipped]


def test_a_run_that_opened_after_us_does_not_stop_us() -> None:
    assert opened_first(of_first(after_us=[of_others(FIRST, 40)])).plan.source == FIRST


def test_in_a_merge_a_run_of_another_topic_stops_us() -> None:
    # Positions of different topics stand in different partitions of the position topic: nobody was first.
    problems = assert_refused(of_merge(after_us=[of_others(SECOND, 30)]), FIRST)

    assert "theirs" in str(problems[FIRST])


def test_in_a_merge_two_runs_that_each_were_first_once_both_stand_back() -> None:
    first, second = (of_others(source, 40) for source in (FIRST, SECOND))

    assert_refused(of_merge(before_us=[first], after_us=[second]), FIRST, SECOND)


def test_a_claim_that_cannot_be_seen_is_no_claim() -> None:
    class Behind(Clusters):
        def read_since(self, _: PositionSnapshot) -> tuple[StoredPosition, ...]:
            return ()

    assert_refused(Behind(closed(FIRST, 40), target_end=40, sources=[FIRST]), FIRST)
