"""Faults that concern a whole copy task: every partition still gets a true account.

Many faults at once, chosen at random: the target is always a prefix of the source, and every account is true.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import mirror_lib.copy.transfer.task as copy_module
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.errors import AuthenticationError, BrokerUnreachableError, MirrorError, TransientError, Where
from mirror_lib.planning.model import Takeover
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FIRST_EPOCH, PRODUCER_ID, FakeCluster, Produced, fill, job
from tests.unit.copy.conftest import CopyBetween, FakePair, WatchedMemory


def test_a_fault_of_this_program_leaves_true_accounts(pair: FakePair) -> None:
    # One partition is done, one has a batch on its way, one has not begun when an answer cannot be understood.
    for partition in range(3):
        fill(pair.source.add("orders", partition, leader=partition), [100])
    partitions = [pair.opened(partition=n) for n in range(3)]
    pair.target.leaders[TopicPartition("A.orders", 1)] = 7
    done = asyncio.Event()

    async def answer(node: int, keys: Sequence[TopicPartition]) -> None:
        if node == 7:
            done.set()
            await asyncio.Event().wait()

    async def fail(node: int, wanted: Sequence[FetchRequestPartition]) -> None:
        if node == 2:
            await done.wait()
            await asyncio.sleep(0.05)
            raise ZeroDivisionError("a fault")

    pair.target.before_answer, pair.source.on_fetch = answer, fail

    finished, sent, unread = pair.copy(*partitions)

    assert (finished.error, finished.complete, finished.certain) == (None, True, True)
    assert sent.error is not None
    assert "ZeroDivisionError" in sent.error.what
    assert (sent.source_next, sent.certain) == (0, False)
    assert unread.error is not None
    assert unread.error.where.partition == 2
    assert (unread.source_next, unread.certain) == (0, True)


def test_an_error_of_all_partitions_names_each(pair: FakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in ("first", "second"):
        fill(pair.source.add(topic), [100])

    @asynccontextmanager
    async def refused(*_: object) -> AsyncIterator[None]:
        raise AuthenticationError("the cluster refused our credentials.", where=Where(cluster="B"))
        yield

    monkeypatch.setattr(copy_module, "open_clients", refused)

    results = copy_bin(job(pair.opened("first"), pair.opened("second")), 0)

    places = [result.error.where for result in results if result.error is not None]
    assert places == [Where("A->B", "B", "first", 0), Where("A->B", "B", "second", 0)]
    assert all(result.certain for result in results)


def test_connecting_is_tried_again_until_the_time_is_up(
    copy_between: CopyBetween, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: list[MirrorError] = []

    @asynccontextmanager
    async def clients(*_: object) -> AsyncIterator[tuple[FakeCluster, FakeCluster]]:
        if away:
            raise away.pop()
        yield pair.source, pair.target

    monkeypatch.setattr(copy_module, "open_clients", clients)
    for error in (BrokerUnreachableError("nobody answers."), TransientError("no KDC answered.")):
        pair = FakePair(copy_between)
        fill(pair.source.add("orders"), [100])
        away += [error, error]

        (result,) = copy_bin(job(pair.opened(), retry_max_seconds=5.0), 0)

        assert (result.complete, away) == (True, []), error


def test_an_exception_that_nobody_asked_for_ends_nothing(pair: FakePair) -> None:
    # A client library may drop a future that failed: whoever needed it has been told otherwise.
    fill(pair.source.add("orders"), [100])

    def drop(*_: object) -> None:
        asyncio.get_running_loop().create_future().set_exception(OSError("the connection is gone"))
        gc.collect()

    pair.source.on_fetch = drop

    result = pair.copy_orders()

    assert result.complete


def test_a_lost_broker_that_a_fault_tells_of_does_not_begin_the_task_again(pair: FakePair) -> None:
    # What was on its way is not known any more, so the same accounts cannot go on.
    fill(pair.source.add("orders"), [100])

    async def fail(*_: object) -> None:
        asyncio.get_running_loop().call_soon(throw)
        await asyncio.Event().wait()

    def throw() -> None:
        raise BrokerUnreachableError("gone.")

    pair.source.on_fetch = fail

    result = pair.copy_orders(retry_max_seconds=3.0)

    assert isinstance(result.error, BrokerUnreachableError)
    assert len(pair.source.fetches) == 1


_PARTITIONS = 6
_REFUSALS = [
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]
_LOSSES = [
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    BrokerUnreachableError("gone."),
]
_SOURCE_FAULTS = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR]


class Chaos:
    """Faults of both clusters, each with its own rate."""

    def __init__(self, seed: int, source: FakeCluster, target: FakeCluster) -> None:
        self.random = random.Random(seed)
        self.source, self.target = source, target
        self.refusals, self.losses, self.reads, self.moves = (self.random.choice([0, 0.02, 0.2]) for _ in range(4))
        self.restarts = self.random.choice([0, 0.05])
        # A code that ends a partition for good would leave little to see if it came often.
        self.last = 0.003 if self.random.random() < 0.5 else 0.0

    def refuse(self, _: Produced) -> int | None:
        if self.random.random() < self.last:
            return self.random.choice(_REFUSALS[-2:])
        return self.random.choice(_REFUSALS[:-2]) if self.random.random() < self.refusals else None

    def lose(self, request: Produced) -> int | Exception | None:
        if self.random.random() < self.restarts:
            self.target.restart(request[0], forget=self.random.random() < 0.5)
        if self.random.random() < self.moves:
            self.target.leaders[request[1]] = self.random.choice([1, 2, 3])
        return self.random.choice(_LOSSES) if self.random.random() < self.losses else None

    async def delay(self, *_: object) -> None:
        for _ in range(self.random.choice([0, 0, 1, 5, 20])):
            await asyncio.sleep(0)

    async def fetch(self, node: int, wanted: Sequence[FetchRequestPartition]) -> list[FetchedPartition] | None:
        await self.delay()
        chance = self.random.random()
        if chance < self.reads / 2:
            raise BrokerUnreachableError("gone.")
        if chance < self.reads:
            # Some are refused, some left out, some are served and get a cut batch at their end.
            return [
                self.source.fetched(each, data, error_code=code)
                for each in wanted
                if (code := self.random.choice([*_SOURCE_FAULTS, 0])) or self.random.random() < 0.5
                if (data := b"" if code else self.cut(each)) is not None
            ]
        return None

    def cut(self, wanted: FetchRequestPartition) -> bytes:
        data = self.source._read(wanted, wanted.max_bytes, True)
        return data[: self.random.randint(1, len(data))] if data else data


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_lib.cluster.raw.backoff._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("mirror_lib.cluster.raw.backoff._LONGEST_PAUSE", 0.01)


def break_things(seed: int, pair: FakePair) -> random.Random:
    """Let both clusters fail at random; returns what else is to be chosen by."""
    source, target = pair.source, pair.target
    chaos = Chaos(seed, source, target)
    target.refuse, target.lose, source.on_fetch = chaos.refuse, chaos.lose, chaos.fetch
    target.before_produce = target.before_answer = chaos.delay
    source.round_trips = {node: chaos.random.choice([0.0, 0.15]) for node in (1, 2)}
    target.round_trips = {node: chaos.random.choice([0.0, 0.15]) for node in (1, 2)}
    return chaos.random


def stop_breaking(pair: FakePair) -> None:
    """Let both clusters work."""
    for name in ("refuse", "lose", "before_produce", "before_answer"):
        setattr(pair.target, name, lambda *_: None)
    pair.source.on_fetch = lambda *_: None


def chosen_settings(chosen: random.Random) -> dict[str, object]:
    return {
        "retry_max_seconds": chosen.choice([0.05, 2.0]),
        "batch_passthrough_min_bytes": chosen.choice([0, 1_000, 16_384]),
        "batch_max_bytes": 4_000,
        "task_memory_bytes": chosen.choice([20_000, 200_000]),
        "fetch_max_bytes": chosen.choice([5_000, 100_000]),
        "fetch_partition_max_bytes": chosen.choice([1_000, 50_000]),
        "produce_max_in_flight": chosen.randint(1, 5),
        "connections_per_broker": chosen.choice([0, 1, 2, 5]),
    }


def fill_all(source: FakeCluster, chosen: random.Random) -> dict[int, list[bytes]]:
    """Records in every partition; returns the values by partition."""
    written = {}
    for partition in range(_PARTITIONS):
        sizes = [chosen.choice([20, 200, 3000]) for _ in range(chosen.randint(1, 60))]
        log = source.add("orders", partition, leader=chosen.choice([1, 2]))
        written[partition] = fill(log, sizes, records_each=chosen.randint(1, 3))
    return written


def test_the_target_is_a_prefix_of_the_source_and_accounts_are_true(
    copy_between: CopyBetween, memory: list[WatchedMemory], subtests: pytest.Subtests
) -> None:
    for seed in range(25):
        with subtests.test(seed=seed):
            pair = FakePair(copy_between)
            chosen = break_things(seed, pair)
            written = fill_all(pair.source, chosen)
            copies = [pair.opened(partition=n) for n in range(_PARTITIONS)]
            for key in pair.target.leaders:
                pair.target.leaders[key] = chosen.choice([1, 2])

            results = pair.copy(*copies, **chosen_settings(chosen))

            for result in results:
                values = written[result.source.partition]
                arrived = pair.copied(result.source.partition)
                assert arrived == values[: len(arrived)]
                assert result.records == result.target_next == result.source_next <= len(arrived)
                assert sum(run.count for run in result.runs) == result.records
                if result.certain:
                    assert result.target_next == len(arrived)
                if result.error is None:
                    assert result.complete
                    assert len(arrived) == len(values)


def test_a_merge_keeps_the_order_of_each_source(
    copy_between: CopyBetween, memory: list[WatchedMemory], subtests: pytest.Subtests
) -> None:
    for seed in range(10):
        with subtests.test(seed=seed):
            pair = FakePair(copy_between)
            chosen = break_things(seed, pair)
            written = {
                topic: fill(
                    pair.source.add(topic, leader=chosen.choice([1, 2])),
                    [chosen.choice([20, 200, 3000]) for _ in range(chosen.randint(1, 40))],
                    prefix=f"{topic}-",
                )
                for topic in ("first", "second", "third")
            }
            copies = [pair.opened(topic, to="merged") for topic in written]

            results = pair.copy(*copies, **chosen_settings(chosen))

            merged = pair.target.partitions[TopicPartition("merged", 0)].values()
            for result in results:
                values = written[result.source.topic]
                arrived = [value for value in merged if value and value.startswith(result.source.topic.encode())]
                assert arrived == values[: len(arrived)]
                assert result.records == result.source_next <= len(arrived)
                assert [merged[run.target_first : run.target_next] for run in result.runs] == [
                    values[run.source_first : run.source_next] for run in result.runs
                ]
                if result.error is None:
                    assert len(arrived) == len(values)
            if all(result.certain for result in results):
                assert max(result.target_next for result in results) == len(merged)


def test_attempts_that_take_over_from_one_another_copy_every_record_once(
    copy_between: CopyBetween, memory: list[WatchedMemory], subtests: pytest.Subtests
) -> None:
    for seed in range(12):
        with subtests.test(seed=seed):
            pair = FakePair(copy_between)
            chosen = break_things(seed, pair)
            written = fill_all(pair.source, chosen)
            copies = [pair.opened(partition=n) for n in range(_PARTITIONS)]

            for _ in range(4):
                # Its accounts are lost, as those of a killed attempt: only what was certain before it is known.
                results = pair.copy(*copies, **chosen_settings(chosen))
                assert all(result.start + result.records <= result.end for result in results)
                copies = [replace(each, takeover=Takeover(0, 0, PRODUCER_ID, FIRST_EPOCH)) for each in copies]
            stop_breaking(pair)
            results = pair.copy(*copies)

            assert all(result.complete for result in results), [str(result.error) for result in results]
            for partition, values in written.items():
                assert pair.copied(partition) == values
