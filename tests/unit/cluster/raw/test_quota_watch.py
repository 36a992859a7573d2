"""What is said when a broker throttles us, and where its answers tell so (FetchResponse.json, ProduceResponse.json)."""

from __future__ import annotations

import logging

import pytest

from mirror_lib.cluster.protocol.fetch import EPOCH_CHECKING_VERSION, PLAIN_VERSION, fetch_throttle_ms
from mirror_lib.cluster.protocol.produce import produce_throttle_ms
from mirror_lib.cluster.raw.quota_watch import QuotaWatch
from mirror_lib.errors import MirrorError


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_stands_first_in_an_answer_to_fetch_and_last_in_one_to_produce() -> None:
    # Throttle time 1500 ms, no error, no session, no topics.
    assert fetch_throttle_ms(memoryview(bytes.fromhex("000005dc 0000 00000000 00000000")), PLAIN_VERSION) == 1500
    compact = memoryview(bytes.fromhex("00 000005dc 0000 00000000 01 00"))
    assert fetch_throttle_ms(compact, EPOCH_CHECKING_VERSION) == 1500
    # No topics, throttle time 1500 ms.
    assert produce_throttle_ms(memoryview(bytes.fromhex("00000000 000005dc"))) == 1500


def test_an_answer_that_is_cut_off_is_an_error_of_ours() -> None:
    with pytest.raises(MirrorError):
        fetch_throttle_ms(memoryview(b"\0\0"))
    with pytest.raises(MirrorError):
        produce_throttle_ms(memoryview(b"\0\0"))


def test_throttling_is_told_at_once_and_then_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watch = QuotaWatch("A", "mirror-data-consumer", clock=clock)
    caplog.set_level(logging.WARNING)

    for _ in range(70):
        watch.note(3, 500)
        clock.now += 1.0

    first, second = (record.getMessage() for record in caplog.records)
    assert "broker 3 of A throttles the client 'mirror-data-consumer': 0.5 s" in first
    # Sixty more answers.
    assert "30.0 s" in second
    assert watch.throttled_ms == 35_000


def test_without_throttling_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    watch = QuotaWatch("A", "mirror-data-consumer")

    watch.note(3, 0)

    assert (caplog.records, watch.throttled_ms) == ([], 0)
