"""The writing half against brokers that refuse, move and forget: what stands on the target is always a prefix."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import pytest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw import backoff as retry
from mirror_lib.cluster.raw.client import FetchRequestPartition
from mirror_lib.copy.transfer.producer import TargetWriter
from mirror_lib.errors import (
    BrokerUnreachableError,
    ClusterError,
    FencedError,
    RecordRefusedError,
    RecordTooLargeError,
    TargetDivergedError,
    TargetTruncatedError,
    TopicMissingError,
    TransientError,
)
from mirror_lib.planning.model import ProducerMemory
from mirror_lib.records.header import parse_header
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import REMEMBERS_ALL, FakeCluster, Produced, fill
from tests.unit.copy.conftest import CopyBetween, FakePair

REMOTE = TopicPartition("A.orders", 0)


def first_sequence(request: Produced) -> int:
    return parse_header(request[2]).base_sequence


def test_a_lost_leadership_may_have_come_after_the_append(pair: FakePair) -> None:
    # The followers had fetched the batch when the leader stepped down, so the next leader has it.
    fill(pair.source.add("orders"), [100])
    pair.target.lose = lambda _: ErrorCode.NOT_LEADER_OR_FOLLOWER
    pair.target.before_answer = lambda *_: pair.target.leaders.pop(REMOTE, None)

    result = pair.copy_orders(retry_max_seconds=0.3)

    assert isinstance(result.error, TransientError)
    assert len(pair.copied()) == 1
    assert (result.target_next, result.certain) == (0, False)


def test_a_position_may_be_closed_only_after_a_plain_refusal(
    copy_between: CopyBetween, subtests: pytest.Subtests
) -> None:
    for code, error, certain in (
        (ErrorCode.INVALID_RECORD, RecordRefusedError, True),
        # The position belongs to whoever has taken over.
        (ErrorCode.INVALID_PRODUCER_EPOCH, FencedError, False),
        # Somebody writes with our identity, or the target lost what it had acknowledged.
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ClusterError, False),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ClusterError, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ClusterError, False),
    ):
        with subtests.test(code=code):
            pair = FakePair(copy_between)
            fill(pair.source.add("orders"), [100] * 6)
            pair.target.refuse = partial(refuse_third, code)

            result = pair.copy_orders()

            assert isinstance(result.error, error)
            assert (result.source_next, result.target_next, result.records) == (2, 2, 2)
            assert result.certain is certain


def refuse_third(code: ErrorCode, request: Produced) -> ErrorCode | None:
    return code if first_sequence(request) == 2 else None


def test_sequence_numbers_wrap_around(pair: FakePair) -> None:
    values = fill(pair.source.add("orders"), [100] * 40, records_each=2)
    partition = pair.opened()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirror_lib.copy.transfer.producer_state.SEQUENCES", 23)
        patch.setattr("tests.support.brokers.fake_cluster._SEQUENCES", 23)
        (result,) = pair.copy(partition)

    assert result.error is None
    assert pair.copied() == values


def test_a_merged_partition_that_is_done_does_not_get_the_error_of_another(pair: FakePair) -> None:
    fill(pair.source.add("first"), [100], prefix="first")
    fill(pair.source.add("second", leader=2), [100, 200], prefix="second")
    partitions = [pair.opened(name, to="merged") for name in ("first", "second")]
    pair.target.refuse = lambda request: ErrorCode.MESSAGE_TOO_LARGE if len(request[2]) > 250 else None

    first, second = pair.copy(*partitions, fetch_partition_max_bytes=1024)

    assert first.error is None
    assert first.complete
    assert second.error is not None
    assert second.error.where.topic == "second"


def test_a_merged_partition_tells_where_the_writing_failed(pair: FakePair) -> None:
    fill(pair.source.add("first"), [100] * 3, prefix="first")
    fill(pair.source.add("second", leader=2), [100] * 3, prefix="second")
    partitions = [pair.opened(name, to="merged") for name in ("first", "second")]
    pair.target.refuse = lambda request: ErrorCode.TOPIC_AUTHORIZATION_FAILED

    results = pair.copy(*partitions)

    assert [result.error.where.topic for result in results if result.error] == ["first", "second"]


def test_a_topic_that_is_missing_after_other_faults_gets_its_own_time(pair: FakePair) -> None:
    # A restarted broker does not know its topics at once.
    values = fill(pair.source.add("orders"), [100])
    faults = iter([ErrorCode.NOT_ENOUGH_REPLICAS] * 4 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2)
    pair.target.refuse = lambda _: next(faults, None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirror_lib.cluster.raw.backoff._MISSING_TOPIC_SECONDS", 1.0)
        patch.setattr("mirror_lib.cluster.raw.backoff._LONGEST_PAUSE", 0.3)
        pair.assert_whole_copy(values, retry_max_seconds=20.0)


def test_a_topic_that_stays_missing_is_given_up(pair: FakePair) -> None:
    fill(pair.source.add("orders"), [100])
    pair.target.refuse = lambda _: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirror_lib.cluster.raw.backoff._MISSING_TOPIC_SECONDS", 0.3)
        result = pair.copy_orders(retry_max_seconds=20.0)

    assert isinstance(result.error, TopicMissingError)


def test_nothing_is_appended_twice_by_a_broker_that_forgets_producers(
    copy_between: CopyBetween, subtests: pytest.Subtests
) -> None:
    # A restarted broker forgets the producers of old records, and of others remembers the last batch only.
    def restart_once(target: FakeCluster, forget: bool, request: Produced) -> None:
        if first_sequence(request) == 4 and not target.restarts:
            target.restart(1, forget=forget)

    for forget in (True, False):
        with subtests.test(forget=forget):
            pair = FakePair(copy_between)
            values = fill(pair.source.add("orders"), [100] * 12)
            pair.target.lose = partial(restart_once, pair.target, forget)

            result = pair.assert_whole_copy(values, retry_max_seconds=5.0)

            assert sum(run.count for run in result.runs) == len(values)


def test_what_stands_in_the_log_counts_only_when_it_is_replicated(pair: FakePair) -> None:
    fill(pair.source.add("orders"), [100])
    pair.target.lose = lambda _: BrokerUnreachableError("gone.")
    pair.target.unreplicated = 1

    result = pair.copy_orders(retry_max_seconds=0.3)

    assert isinstance(result.error, TransientError)
    assert (result.target_next, result.certain) == (0, False)
    assert len(pair.target.produced) == 1


def test_records_that_the_log_has_beyond_ours_are_another_writers(pair: FakePair) -> None:
    fill(pair.source.add("orders"), [100] * 3)

    def append_more(request: Produced) -> Exception:
        fill(pair.target.partitions[REMOTE], [100], records_each=3)
        return BrokerUnreachableError("gone.")

    pair.target.lose = append_more

    result = pair.copy_orders(retry_max_seconds=3.0)

    assert isinstance(result.error, TargetDivergedError)
    assert not result.certain


def test_the_log_is_looked_at_once_though_its_answer_frees_more_to_write(pair: FakePair) -> None:
    """A second look, asked for while the first one is worked on, would tell an end that lies behind what came since."""
    values = fill(pair.source.add("orders"), [100] * 40)
    lost: list[Produced] = []
    ends: list[int] = []

    def lose_first(request: Produced) -> Exception | None:
        lost.append(request)
        return BrokerUnreachableError("gone.") if len(lost) == 1 else None

    async def slowly(node: int, partition: TopicPartition) -> tuple[int, int]:
        end = pair.target.partitions[partition].end
        ends.append(end)
        # The first answer comes at once. Others were under way while the log grew.
        await asyncio.sleep(0 if len(ends) == 1 else 0.2)
        return end, end

    async def wait_for_the_look(node: int, wanted: Sequence[FetchRequestPartition]) -> None:
        # So that small batches are held back until those before them are acknowledged.
        while wanted[0].offset >= 8 and not ends:
            await asyncio.sleep(0.01)

    pair.target.lose = lose_first
    pair.target.log_ends = slowly  # type: ignore[method-assign]
    pair.source.on_fetch = wait_for_the_look
    gathering = {"batch_passthrough_min_bytes": 16_384, "fetch_partition_max_bytes": 700}

    result = pair.copy_orders(retry_max_seconds=5.0, **gathering)

    assert result.error is None
    assert len(ends) == 1
    assert pair.copied() == values


def test_a_log_that_lost_what_it_acknowledged_is_told(pair: FakePair) -> None:
    fill(pair.source.add("orders"), [100] * 3)

    def truncate(request: Produced) -> Exception | None:
        if first_sequence(request) == 0:
            return None
        pair.target.partitions[REMOTE].end = 0
        return BrokerUnreachableError("gone.")

    pair.target.lose = truncate

    result = pair.copy_orders(retry_max_seconds=3.0)

    assert isinstance(result.error, TargetTruncatedError)
    assert not result.certain


def test_given_tries_that_are_all_refused_then_the_position_is_closed_unless_a_request_is_held_up(
    copy_between: CopyBetween,
) -> None:
    for held_up in (False, True):
        pair = FakePair(copy_between)
        fill(pair.source.add("orders"), [100] * 5)
        pair.target.refuse = lambda request: ErrorCode.NOT_ENOUGH_REPLICAS if first_sequence(request) >= 2 else None
        if held_up:
            # A proxy keeps the request: it may hand it over when the run has long ended.
            pair.end_connection_at(3)

        result = pair.copy_orders(retry_max_seconds=1.0)

        assert isinstance(result.error, TransientError)
        # The log is looked at for what is held up, and does not hold the batch.
        assert pair.target.looks == int(held_up)
        assert (result.source_next, result.target_next, result.certain) == (2, 2, not held_up)


def test_given_an_unanswered_request_that_is_sent_again_and_acknowledged_then_the_position_may_be_closed(
    pair: FakePair,
) -> None:
    # The broker knows the sequence numbers by then: it refuses the request that was held up as a duplicate.
    values = fill(pair.source.add("orders"), [100] * 5)
    pair.end_connection_at(2)

    result = pair.copy_orders()

    assert pair.copied() == values
    assert (result.error, result.certain) == (None, True)


class TestATargetThatClosesTheConnectionOverLargeRequests:
    """As brokers do above `socket.request.max.bytes`, and proxies above limits of their own."""

    LIMIT = 100_000
    PATIENT: ClassVar[dict[str, object]] = {"retry_max_seconds": 30.0, "batch_max_bytes": 512 * 1024}

    @pytest.fixture(autouse=True)
    def no_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retry, "_FIRST_PAUSE", 0.001)
        monkeypatch.setattr(retry, "_LONGEST_PAUSE", 0.01)

    def copy_four(self, pair: FakePair, **settings: object) -> None:
        """Copy partitions whose batches are too large for a request only together."""
        for number in range(4):
            fill(pair.source.add("orders", number), [40_000, 40_000], prefix=f"{number}-")
        pair.target.request_max_bytes = self.LIMIT

        results = pair.copy_all(4, **self.PATIENT, **settings)

        assert [result.error for result in results] == [None] * 4

    def test_gets_one_batch_after_the_other_when_only_together_they_are_too_large(self, pair: FakePair) -> None:
        self.copy_four(pair)

        assert all(len(pair.copied(number)) == 2 for number in range(4))

    def test_stops_a_partition_at_a_record_that_is_too_large_and_no_other(self, pair: FakePair) -> None:
        values = fill(pair.source.add("orders"), [500, 500, 120_000, 500])
        others = fill(pair.source.add("orders", 1), [30_000] * 12)
        pair.target.request_max_bytes = self.LIMIT

        first, second = pair.copy_all(2, **self.PATIENT)

        assert isinstance(first.error, RecordTooLargeError)
        assert first.error.where.offset == 2
        assert pair.copied() == values[:2]
        # What was sent last got no answer, so the next run has to look.
        assert (first.source_next, first.certain) == (2, False)
        assert second.error is None
        assert pair.copied(1) == others

    def test_does_not_lose_a_record_to_connections_that_end_for_another_reason(self, pair: FakePair) -> None:
        values = fill(pair.source.add("orders"), [500] * 30)
        ended: list[int] = []

        def end(node: int, _: object) -> None:
            if len(ended) < 40:
                ended.append(node)
                pair.target.restart(node, False)

        pair.target.before_produce = end

        pair.assert_whole_copy(values, **self.PATIENT)

    def test_is_not_sent_what_has_a_limit_in_the_file(self, pair: FakePair) -> None:
        self.copy_four(pair, request_max_bytes=self.LIMIT)

        assert pair.target.torn == 0


@pytest.mark.parametrize("noticed_by", ["the response", "another partition"])
def test_given_a_task_that_was_stopped_while_it_looked_at_the_log_when_it_goes_on_then_it_looks_once_more(
    pair: FakePair, monkeypatch: pytest.MonkeyPatch, noticed_by: str
) -> None:
    """Seed 8001 of the model, by chance: what another partition had noticed first was forgotten by an old response."""
    values = fill(pair.source.add("orders"), [100] * 5)
    lost: list[Produced] = []
    clock = [1000.0]

    def lose_first(request: Produced) -> Exception | None:
        lost.append(request)
        return BrokerUnreachableError("gone.") if len(lost) == 1 else None

    async def look(node: int, partition: TopicPartition) -> tuple[int, int]:
        pair.target.looks += 1
        if pair.target.looks == 1:
            # Somebody may have taken over meanwhile.
            clock[0] += 60
            while noticed_by == "another partition" and not noticed:
                await asyncio.sleep(0)
        end = pair.target.partitions[partition].end
        return end, end

    noticed: list[float] = []
    notice = TargetWriter._notice_stall

    def note(writer: TargetWriter) -> None:
        notice(writer)
        if clock[0] > 1000:
            noticed.append(clock[0])

    monkeypatch.setattr(TargetWriter, "_notice_stall", note)
    monkeypatch.setattr("mirror_lib.copy.transfer.producer._TICK_SECONDS", 0.01)
    pair.target.lose = lose_first
    pair.target.log_ends = look  # type: ignore[method-assign]
    monkeypatch.setattr("mirror_lib.copy.transfer.producer._now", lambda: clock[0])

    result = pair.copy_orders(retry_max_seconds=5.0)

    assert result.error is None
    assert pair.target.looks == 2
    assert pair.copied() == values


def test_given_a_task_that_begins_after_its_run_was_suspended_then_it_looks_at_the_log_first(
    copy_between: CopyBetween, subtests: pytest.Subtests
) -> None:
    """Seed 100002 of the model: one of several tasks of a run, which another run had taken over from meanwhile."""
    for case, age, lease_seconds, looks in (
        ("at once", 0.0, 30.0, 0),
        ("after a minute", 60.0, 30.0, 1),
        ("on a clock that is behind", -60.0, 30.0, 1),
        ("soon, and a run may take over soon", 4.0, 3.0, 1),
        ("soon, and no run may take over yet", 4.0, 30.0, 0),
    ):
        with subtests.test(case=case):
            pair = FakePair(copy_between)
            values = fill(pair.source.add("orders"), [100] * 5)
            claimed = pair.opened()

            (result,) = pair.copy(replace(claimed, claimed_at=claimed.claimed_at - age, lease_seconds=lease_seconds))

            assert result.error is None
            assert pair.target.looks == looks
            assert pair.copied() == values


def test_given_a_run_that_took_over_before_the_task_began_then_the_task_writes_nothing(pair: FakePair) -> None:
    fill(pair.source.add("orders"), [100] * 5)
    claimed = pair.opened()
    values = fill(pair.target.partitions[REMOTE], [100] * 5, prefix="other run")

    (result,) = pair.copy(replace(claimed, claimed_at=claimed.claimed_at - 60))

    assert isinstance(result.error, TargetDivergedError)
    assert pair.copied() == values


def test_partitions_share_requests_also_where_their_batches_go_one_by_one(
    copy_between: CopyBetween, subtests: pytest.Subtests
) -> None:
    # Once each partition had a request of its own it would keep it: the answer lets nothing else go on.
    partitions, batches = 8, 30
    for memory in (REMEMBERS_ALL, ProducerMemory()):
        with subtests.test(memory=memory):
            pair = FakePair(copy_between)
            for number in range(partitions):
                fill(pair.source.add("orders", number), [100] * batches)
            requests: list[int] = []
            pair.target.before_produce = partial(note_size, requests)

            results = pair.copy_all(partitions, memory=memory)

            assert [result.error for result in results] == [None] * partitions
            assert sum(requests) == partitions * batches
            # A connection has half of the partitions.
            assert len(requests) < 2 * partitions * batches / (partitions / 2)


def note_size(requests: list[int], _: int, keys: Sequence[TopicPartition]) -> None:
    requests.append(len(keys))
