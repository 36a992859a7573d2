"""Watching a target topic until everything is there."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from bench.clusters import topics as bench_topics
from bench.clusters.topics import Topics, pause
from bench.clusters.window import Look
from bench.errors import BenchError

_NO_LEADER = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)


class _Ends:
    def __init__(self, total: Callable[[], int]) -> None:
        self.total = total

    def close(self) -> None:
        pass


class _Scripted(Topics):
    """A cluster whose topic has these end offsets, look by look; the last ones stay. None: there is no topic yet."""

    def __init__(self, looks: Sequence[Sequence[int] | KafkaError | None]) -> None:
        super().__init__("localhost:1")
        self._looks: Iterator[Sequence[int] | KafkaError | None] = iter(looks)
        self._now: Sequence[int] | KafkaError | None = None
        self._asked = False

    def names(self) -> set[str]:
        self._turn()
        self._asked = True
        return set() if self._now is None else {"t"}

    def _offsets(self, topic: str, partitions: int, spec: Any) -> list[int]:
        if not self._asked:
            self._turn()
        self._asked = False
        if isinstance(self._now, KafkaError):
            raise BenchError("refused") from KafkaException(self._now)
        assert self._now is not None
        return list(self._now)

    def _ends(self, topic: str, partitions: int) -> "_Ends":
        return _Ends(lambda: sum(self._offsets(topic, partitions, None)))

    @property
    def script_is_over(self) -> bool:
        return next(self._looks, self) is self

    def _turn(self) -> None:
        self._now = next(self._looks, self._now)


def _watch(topics: Topics, expected: int) -> list[Look]:
    return topics.watch(
        "t", 2, expected=expected, cpu_seconds=lambda: 0.5, still_running=lambda: None, start_seconds=0.2
    )


def test_only_the_last_look_before_the_first_record_is_kept() -> None:
    too_new = KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH)

    looks = _watch(_Scripted([None, _NO_LEADER, too_new, [0, 0], [0, 0], [3, 0], [3, 2]]), 5)

    assert [look.records for look in looks] == [0, 3, 5]
    assert looks[0].at < looks[1].at < looks[2].at


def test_a_topic_can_be_written_only_once_its_leaders_have_taken_over() -> None:
    topics = _Scripted([None, _NO_LEADER, _NO_LEADER, [0, 0]])

    topics.wait_until_led("t", 2)

    assert topics.script_is_over


def test_a_copy_that_ends_early_or_cannot_be_seen_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_topics, "STALL_SECONDS", 0.1)
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    cases: tuple[tuple[Sequence[Sequence[int] | KafkaError], str], ...] = (
        # A topic that was there must stay readable.
        ([[0, 0], _NO_LEADER], "refused"),
        ([refused], "refused"),
        ([[0, 0]], r"t has 0 of 2 records"),
        ([[0, 0], [1, 0]], r"t has 1 of 2 records"),
    )
    for looks, message in cases:
        with pytest.raises(BenchError, match=message):
            _watch(_Scripted(looks), 2)


def test_looks_become_more_frequent_near_the_end() -> None:
    # 5000 records a second; the rest takes a second, 0.2 s, and a millisecond.
    for first, second, seconds in ((1, 5001, 0.1), (4000, 9000, 0.05), (4995, 9995, 0.005)):
        looks = [Look(0.0, 0, 0.0), Look(1.0, first, 0.0), Look(2.0, second, 0.0)]
        assert pause(looks, 10_000) == pytest.approx(seconds)
    # One look with records tells no rate yet, nor does one at which nothing was added.
    halted = [Look(0.0, 0, 0.0), Look(0.02, 50, 0.0), Look(0.04, 50, 0.0)]
    for length in (1, 2, 3):
        assert pause(halted[:length], 10_000) == pytest.approx(0.02)
