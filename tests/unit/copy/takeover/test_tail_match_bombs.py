"""A take-over that has to look far ahead among records that become far larger than their batches."""

from __future__ import annotations

from mirror_lib.copy.takeover.tail_match import TailMatcher
from mirror_lib.records.header import Codec
from mirror_lib.records.spans import read_spans
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import SourceRecord, batch

_HOLE = 100
_SIZE = 2 * MEBIBYTE


def all_ahead() -> int:
    """Both sides have lost the records before the first; each later one is compared with it."""
    first = read_spans(memoryview(batch([SourceRecord(_HOLE, value=b"first")], base_offset=0)), (), read_committed=True)
    later = [batch([SourceRecord(_HOLE + 1 + at, value=bytes(_SIZE))], codec=Codec.ZSTD) for at in range(_HOLE)]
    matcher = TailMatcher(0, 0, _HOLE + 1)
    matcher.feed_source([*first[0], *read_spans(memoryview(b"".join(later)), (), read_committed=True)[0]])
    matcher.feed_target(first[0])
    matcher.walk()
    return matcher.match().records


def test_records_ahead_are_compared_and_not_held() -> None:
    found = measured(all_ahead)

    assert found.result == 1
    assert found.grown < 20 * _SIZE
