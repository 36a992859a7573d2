"""Many skipped records are taken in portions: the rest of a fetch, and of a batch, waits for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.records import poison
from mirror_lib.records.assemble import BatchAssembler
from mirror_lib.records.rules import RecordRules
from mirror_lib.records.transactions import OpenTransaction, TransactionCount
from tests.support.records.record_batches import (
    TRANSACTIONAL,
    SourceRecord,
    assembler,
    batch,
    marker,
    message_set,
    read_with_aiokafka,
    sealed,
)

NEEDS_KEY = RecordRules(needs_key=True)
PRODUCER = 7
LARGE = b"v" * 2_000
MOST = 3


@dataclass(frozen=True)
class Taken:
    """What a partition became."""

    values: list[bytes | None]
    runs: list[int]
    skipped: list[tuple[int, str]]
    transactions: TransactionCount


def copied(subject: BatchAssembler, log: Sequence[tuple[int, bytes]], *, most: int | None = None) -> Taken:
    """Fetch a log of (last offset, batch) as a broker returns it, from the batch with the next offset on."""
    out, skipped = [], []
    while not subject.is_finished:
        before = subject.next_offset
        out += subject.feed(memoryview(b"".join(raw for last, raw in log if last >= before)))
        assert subject.failure is None
        held = subject.flush()
        out += [held] if held is not None else []
        taken = subject.take_skipped()
        # The builder looks at a large record once the next is known.
        assert most is None or len(taken) <= most + 1
        assert subject.next_offset > before
        skipped += [(each.first_offset, each.error.reason) for each in taken]
    return Taken(
        [record[3] for ready in out for record in read_with_aiokafka(ready.payload)],
        [first + n for ready in out for first, count in ready.source_runs for n in range(count)],
        skipped,
        subject.transactions(subject.next_offset),
    )


_RECORD = st.sampled_from([(b"k", b"v"), (None, b"v"), (b"k", LARGE)])
_KIND = st.sampled_from(["uncompressed", "gzip", "transaction", "old", "old-gzip"])


@given(
    kinds=st.lists(st.tuples(_KIND, st.lists(_RECORD, min_size=1, max_size=9)), min_size=1, max_size=6),
    ends=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_in_portions_the_same_is_copied_skipped_and_counted(kinds: list[tuple[str, Any]], *, ends: bool) -> None:
    log: list[tuple[int, bytes]] = []
    offset = 0
    for kind, members in kinds:
        records = [SourceRecord(offset + n, key=key, value=value) for n, (key, value) in enumerate(members)]
        offset += len(members)
        if kind.startswith("old"):
            groups = [records] if kind == "old-gzip" else [[record] for record in records]
            codec = int(kind == "old-gzip")
            log += [(group[-1].offset, message_set(group, magic=1, codec=codec)) for group in groups]
        elif kind == "transaction":
            log.append((offset - 1, batch(records, attributes=TRANSACTIONAL, producer_id=PRODUCER)))
        else:
            log.append((offset - 1, batch(records, codec=int(kind == "gzip"))))
    if ends:
        log.append((offset, marker(offset, PRODUCER, abort=True)))
        offset += 1
    limits: dict[str, Any] = {"rules": NEEDS_KEY, "skip": True, "end": offset, "target_max_message_bytes": 1_000}

    whole = copied(assembler(**limits), log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(poison, "MOST_SKIPPED", MOST)
        portions = copied(assembler(**limits), log, most=MOST)

    assert portions == whole
    assert sorted([*portions.runs, *(first for first, _ in portions.skipped)]) == list(range(offset - ends))


def test_large_ones_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poison, "MOST_SKIPPED_BYTES", 3 * len(LARGE))
    log = [(9, batch([SourceRecord(n, key=None, value=LARGE) for n in range(10)], codec=1))]

    taken = copied(assembler(rules=NEEDS_KEY, skip=True, end=10), log, most=3)

    assert [first for first, _ in taken.skipped] == list(range(10))


def test_a_batch_damaged_behind_many_skipped_records_is_skipped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poison, "MOST_SKIPPED", MOST)
    records = [SourceRecord(n, key=None if n < 20 else b"k") for n in range(30)]
    # The count says one record more than the body has.
    raw = bytearray(batch(records, last_offset=30))
    raw[57:61] = (31).to_bytes(4, "big")
    subject = assembler(rules=NEEDS_KEY, skip=True, end=31)
    assert subject.feed(memoryview(sealed(raw) + batch([SourceRecord(31)]))) == []

    (skipped,) = subject.take_skipped()
    assert (skipped.first_offset, skipped.next_offset, skipped.error.reason) == (0, 31, "corrupt-batch")


def test_as_many_records_as_a_batch_may_hold_are_never_held_at_once() -> None:
    """A million of them, in kilobytes, took more than a gigabyte of errors."""
    count = 40_000
    records = [SourceRecord(n, key=None, value=b"") for n in range(count)]
    log = [(count - 1, batch(records, codec=1))]

    taken = copied(assembler(rules=NEEDS_KEY, skip=True, end=count), log, most=poison.MOST_SKIPPED)

    assert len(taken.skipped) == count


def test_of_a_transaction_whose_record_stops_the_partition_only_the_copied_ones_are_counted() -> None:
    records = [SourceRecord(n, key=None if n == 3 else b"k") for n in range(6)]
    subject = assembler(rules=NEEDS_KEY, skip=False, end=6)

    subject.feed(memoryview(batch(records, attributes=TRANSACTIONAL, producer_id=PRODUCER)))

    assert subject.failure is not None
    assert subject.transactions(subject.next_offset) == TransactionCount(
        counted_to=3, open=(OpenTransaction(PRODUCER, 0, 3),)
    )
