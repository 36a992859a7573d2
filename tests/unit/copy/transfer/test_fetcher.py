"""The reading half against brokers that answer late, in part, or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition
from mirror_lib.copy.transfer.fetcher import SourceReader
from mirror_lib.errors import BrokerUnreachableError, CorruptBatchError, RetriesExhaustedError, SourceTruncatedError
from mirror_lib.records.header import parse_header
from mirror_lib.records.last_records import LastRecord, find_last_records
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import fill
from tests.unit.copy.conftest import FakePair

Wanted = Sequence[FetchRequestPartition]


def test_a_partition_asked_for_again_is_not_taken_for_one_that_was_left_out(pair: FakePair) -> None:
    # Working on a long answer takes many turns; its first partitions are fetched again meanwhile.
    partitions = 30
    for partition in range(partitions):
        fill(pair.source.add("orders", partition), [1000] * 30)

    results = pair.copy_all(partitions, fetch_partition_max_bytes=2000)

    assert all(result.complete for result in results)
    assert pair.source.refreshes == 1
    asked = [wanted.offset for _, request in pair.source.fetches for wanted in request if wanted.partition == 0]
    assert asked == sorted(set(asked))


def test_a_batch_that_never_comes_whole_is_given_up(pair: FakePair) -> None:
    values = fill(pair.source.add("orders"), [1000] * 3)
    log = pair.source.partitions[TopicPartition("orders", 0)]

    def cut(node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        return [pair.source.fetched(wanted[0], log.batches[2][:-1])] if wanted[0].offset == 2 else None

    pair.source.on_fetch = cut

    result = pair.copy_orders(retry_max_seconds=0.5, fetch_partition_max_bytes=2500)

    assert isinstance(result.error, CorruptBatchError)
    assert result.error.where.offset == 2
    assert result.source_next == 2
    assert len(pair.source.fetches) < 20
    assert pair.copied() == values[:2]


def test_offsets_that_compaction_removed_at_the_end_are_skipped(pair: FakePair) -> None:
    values = fill(pair.source.add("orders"), [1000] * 3)
    pair.source.partitions[TopicPartition("orders", 0)].end = 10

    result = pair.copy_orders()

    assert result.complete
    assert result.source_next == 10
    assert pair.copied() == values


def test_nothing_is_skipped_where_records_may_lie_in_remote_storage(pair: FakePair) -> None:
    # A broker that waits in vain for its remote storage answers without records and without an error
    # (KIP-405, Java `DelayedRemoteFetch.onComplete`).
    log = pair.source.add("orders")
    values = fill(log, [1000] * 5)
    log.local_start = 4
    slow = time.monotonic() + 0.3

    def remote(node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        if wanted[0].offset < log.local_start and time.monotonic() < slow:
            return [pair.source.fetched(wanted[0], b"")]
        return None

    pair.source.on_fetch = remote

    pair.assert_whole_copy(values, retry_max_seconds=5.0)


def test_remote_storage_that_stays_silent_ends_the_partition_with_an_error(pair: FakePair) -> None:
    log = pair.source.add("orders")
    fill(log, [1000] * 5)
    log.local_start = 4
    pair.source.on_fetch = lambda _, wanted: [pair.source.fetched(wanted[0], b"")]

    result = pair.copy_orders(retry_max_seconds=0.5)

    assert isinstance(result.error, RetriesExhaustedError)
    assert (result.source_next, result.certain) == (0, True)


def test_an_answer_without_records_shows_that_the_broker_is_well(pair: FakePair) -> None:
    # A broker over its quota leaves all partitions out of an answer (KIP-219), and others may take all that an answer
    # can hold: a partition without records for long need not have failed for long.
    partitions = 4
    for partition in range(partitions):
        fill(pair.source.add("orders", partition), [1000])

    async def quota(node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        calls = len(pair.source.fetches)
        if calls in (3, 4):
            await asyncio.sleep(2.3)
            return [pair.source.fetched(each, b"") for each in wanted]
        return [] if calls <= 6 else None

    pair.source.on_fetch = quota

    results = pair.copy_all(partitions, retry_max_seconds=2.0)

    assert [result.error for result in results] == [None] * partitions


def test_a_failing_broker_does_not_cost_a_look_at_all_partitions_for_each_of_them(
    pair: FakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = 1000
    for partition in range(partitions):
        fill(pair.source.add("orders", partition), [100])
    looks: list[int] = []
    pump = SourceReader._pump

    def counted(reader: SourceReader) -> None:
        looks.append(1)
        pump(reader)

    failures = iter([BrokerUnreachableError("the broker restarts.")] * 4)

    def fail(node: int, wanted: Wanted) -> None:
        if failure := next(failures, None):
            raise failure

    pair.source.on_fetch = fail
    monkeypatch.setattr(SourceReader, "_pump", counted)

    results = pair.copy_all(partitions, retry_max_seconds=30.0)

    assert all(result.complete for result in results)
    assert len(looks) < partitions


def test_a_source_that_was_cut_while_it_is_copied_stops_its_partition(pair: FakePair) -> None:
    """Two batches of the first leader epoch were read; the leader's log of that epoch ends after one of them."""
    values = fill(pair.source.add("orders"), [1000] * 5)
    log = pair.source.partitions[TopicPartition("orders", 0)]

    def elected_uncleanly(node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        (only,) = wanted
        if only.offset < 2:
            return [pair.source.fetched(only, b"".join(log.batches[only.offset : 2]))]
        assert only.last_epoch == parse_header(log.batches[1]).leader_epoch
        return [pair.source.fetched(only, b"")._replace(diverging_end=1)]

    pair.source.on_fetch = elected_uncleanly

    result = pair.copy_orders()

    assert isinstance(result.error, SourceTruncatedError)
    assert result.error.where.offset == 2
    assert "now ends at offset 0" in result.error.what
    assert (result.source_next, result.certain) == (2, True)
    assert pair.copied() == values[:2]


def test_a_copy_tells_of_the_batch_that_it_read_last(pair: FakePair) -> None:
    fill(pair.source.add("orders"), [1000] * 5)
    log = pair.source.partitions[TopicPartition("orders", 0)]

    result = pair.copy_orders()

    assert result.last_record == find_last_records(memoryview(log.batches[-1]), end=log.end).of_log
    assert result.last_record is not None
    assert result.last_record.offset == parse_header(log.batches[-1]).base_offset


def test_a_copy_that_stops_early_tells_of_what_was_known_before(pair: FakePair) -> None:
    """What the position told of lies before all that this copy reads."""
    fill(pair.source.add("orders"), [1000] * 5)
    before, behind = LastRecord(-1, 10, 1), LastRecord(3, 10, 1)
    for known, told in ((before, before), (behind, None)):
        planned = pair.opened()
        planned = replace(planned, plan=replace(planned.plan, last_record=known))
        pair.source.on_fetch = lambda _, wanted: [
            pair.source.fetched(each, b"")._replace(error_code=ErrorCode.OFFSET_OUT_OF_RANGE) for each in wanted
        ]

        (result,) = pair.copy(planned)

        assert (result.complete, result.last_record) == (False, told)


def test_an_epoch_that_the_leader_does_not_know_is_no_loss_where_its_log_reaches_as_far(pair: FakePair) -> None:
    """Compaction has taken all batches of the epoch: a leader that built its epochs from the log knows older ones."""
    values = fill(pair.source.add("orders"), [1000] * 5)
    asked: list[int] = []

    def compacted(node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        (only,) = wanted
        asked.append(only.last_epoch)
        if only.last_epoch < 0:
            return None
        return [pair.source.fetched(only, b"")._replace(diverging_end=only.offset)]

    pair.source.on_fetch = compacted

    (result,) = pair.copy(pair.opened(leader_epoch=4))

    assert result.complete
    assert asked[:2] == [4, -1]
    assert pair.copied() == values


def test_an_unknown_error_of_the_source_may_pass(pair: FakePair) -> None:
    # A leader answers so when its remote storage fails; Java's consumer asks again.
    fill(pair.source.add("orders"), [1000] * 3)

    def fail_twice(node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        refused = [pair.source.fetched(each, b"", error_code=ErrorCode.UNKNOWN_SERVER_ERROR) for each in wanted]
        return refused if len(pair.source.fetches) < 3 else None

    pair.source.on_fetch = fail_twice

    result = pair.copy_orders(retry_max_seconds=3.0)

    assert result.complete
