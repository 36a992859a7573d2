"""Batches as Kafka's Java classes write them (see data/README.md) are read right, whatever their age and codec."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.errors import CorruptBatchError
from mirror_lib.records.assemble import ReadyBatch
from mirror_lib.records.stamping import stamp
from tests.support.records.record_batches import SourceRecord, assembler, batch, fed, read_with_kafka_python

DATA = Path(__file__).parent / "data"
TIME = 1_700_000_000_000
HEADERS = (("h", b"1"), ("h", None), ("", b""))
#: (timestamp, key, value, headers) as JavaBatches.java gives them to the builders.
RECORDS = [(TIME, b"key", b"value" * 30, HEADERS), (TIME + 5_000, None, b"", ()), (TIME - 7, b"", None, ())]


def contents(out: list[ReadyBatch]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for ready in out:
        stamp(ready, 1, 0, 0)
        found += [record[1:] for record in read_with_kafka_python(ready.payload)]
    return found


def test_today_s_batches_arrive_equal_alone_and_gathered(subtests: pytest.Subtests) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with subtests.test(codec=codec):
            raw = (DATA / f"magic-2-{codec}.bin").read_bytes()
            assert contents(fed(assembler(start=100), raw)) == RECORDS
            number = ["none", "gzip", "snappy", "lz4", "zstd"].index(codec)
            (gathered,) = fed(assembler(start=100), raw + batch([SourceRecord(103, timestamp=1)], codec=number))
            assert gathered.source_runs == ((100, 4),)
            assert contents([gathered])[:3] == RECORDS


def test_old_messages_become_records_without_headers_and_those_of_magic_0_without_a_time(
    subtests: pytest.Subtests,
) -> None:
    names = ("magic-1-none", "magic-1-gzip", "magic-1-snappy", "magic-1-lz4")
    for name in (*names, "magic-0-none", "magic-0-gzip", "magic-0-snappy"):
        with subtests.test(name):
            out = fed(assembler(start=100), (DATA / f"{name}.bin").read_bytes())
            assert [ready.source_runs for ready in out] == [((100, 3),)]
            times = [time if name in names else -1 for time, *_ in RECORDS]
            assert contents(out) == [(time, *record[1:3], ()) for time, record in zip(times, RECORDS, strict=True)]


def test_the_broken_frames_of_magic_0_with_lz4_are_refused_and_not_guessed() -> None:
    # KAFKA-3160: clients of that time computed the frame's checksum wrongly.
    subject = assembler(start=100)
    assert fed(subject, (DATA / "magic-0-lz4.bin").read_bytes()) == []
    assert isinstance(subject.failure, CorruptBatchError)
    assert "LZ4" in str(subject.failure)


def test_the_broker_s_time_becomes_each_record_s_own() -> None:
    out = fed(assembler(start=100), (DATA / "log-append-time.bin").read_bytes())
    assert contents(out) == [(TIME + 99, key, value, headers) for _, key, value, headers in RECORDS]


def test_a_transaction_is_shown_by_how_it_ended(subtests: pytest.Subtests) -> None:
    for marker, arrives in (("abort", False), ("commit", True)):
        with subtests.test(marker=marker):
            log = (DATA / "transactional.bin").read_bytes() + (DATA / f"{marker}-marker.bin").read_bytes()
            subject = assembler(start=100, read_committed=True)
            out = fed(subject, log, aborted=() if arrives else ((77, 100),))
            assert contents(out) == (RECORDS if arrives else [])
            assert subject.failure is None
            assert subject.next_offset == 104
            # The marker ends the abort: what the same producer writes later is shown.
            later = batch([SourceRecord(104, timestamp=5)], attributes=0x10, producer_id=77)
            out = fed(assembler(start=100, read_committed=True), log + later, aborted=() if arrives else ((77, 100),))
            assert contents(out)[-1] == (5, None, b"value", ())
