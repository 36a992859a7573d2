"""Deletions that the flow writes by itself, recognized in a target's log and nowhere else."""

from __future__ import annotations

from mirror_lib.features.verify.own_deletions import deletion, hide_own_deletions
from mirror_lib.records.builder import rebuild
from mirror_lib.records.header import TRANSACTIONAL_BIT
from mirror_lib.records.records import Record
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.records.stamping import stamp
from tests.support.records.record_batches import DELETE_HORIZON, SourceRecord, batch

FLOW = "A->B"


def spans(data: bytes | bytearray) -> list[Span]:
    found, size = read_spans(memoryview(data), [], read_committed=True)
    assert size == len(data)
    return found


def own(offset: int, keys: list[bytes], **more: int) -> bytes:
    """As a broker stores what the flow has written at an offset; `more` is for the batch."""
    header = (("mirror.deletion", f"{FLOW} {offset}".encode()),)
    records = [SourceRecord(offset + at, key=key, value=None, headers=header) for at, key in enumerate(keys)]
    settings = {"attributes": TRANSACTIONAL_BIT, "producer_id": 5, "base_offset": offset, **more}
    return batch(records, **settings)


def test_what_is_written_is_a_tombstone_with_a_header_that_names_flow_and_offset() -> None:
    record = Record(0, 1_700_000_000_000, deletion(b"k", FLOW, 7))
    (made,) = rebuild(iter([record]), codec=0, batch_max_bytes=1000, max_message_bytes=1000)
    stamp(made, 5, 0, 0, in_transaction=True)

    (written,), (expected,) = spans(bytearray(made.payload)), spans(own(7, [b"k"]))

    assert written.body == expected.body


def test_own_deletions_are_hidden_whatever_codec_the_topic_has() -> None:
    for codec in (0, 1, 2, 3, 4):
        data = own(7, [b"k", b"l"], codec=codec)

        assert hide_own_deletions(spans(data), FLOW) == [Span(7, 9)], codec


def test_they_are_hidden_when_the_cleaner_has_taken_some_of_them_and_set_a_horizon() -> None:
    header = (("mirror.deletion", f"{FLOW} 7".encode()),)
    left = [SourceRecord(8, key=b"l", value=None, headers=header)]
    data = batch(left, base_offset=7, last_offset=9, attributes=TRANSACTIONAL_BIT | DELETE_HORIZON, producer_id=5)

    assert hide_own_deletions(spans(data), FLOW) == [Span(7, 10)]


def test_everything_else_is_seen() -> None:
    moved = own(7, [b"k"], base_offset=6)
    plain = own(7, [b"k"], attributes=0)
    data = batch([SourceRecord(7, key=b"k", value=None)], attributes=TRANSACTIONAL_BIT, producer_id=5)

    for each in (moved, plain, data):
        assert hide_own_deletions(spans(each), FLOW) == spans(each)
    assert hide_own_deletions(spans(own(7, [b"k"])), "C->B") == spans(own(7, [b"k"]))
