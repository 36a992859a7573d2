"""Logs made of real batches, for tests that compare logs without brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock, read_blocks
from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.findings import DifferenceKind, RangeOutcome
from mirror_lib.features.verify.model import CheckRange, PartitionCheck
from mirror_lib.offsets.runs import OffsetRun, encode, merge
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.topology.names import TopicPartition
from tests.support.records.record_batches import SourceRecord, batch

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
#: Numbers of records of the first batches of a log.
SIZES = st.lists(st.integers(1, 9), max_size=12)
CODECS = st.sampled_from([0, 1, 3, 4])


def numbered(count: int, *, first: int = 0) -> list[SourceRecord]:
    """Records that are all different, in a row."""
    return [
        SourceRecord(
            first + number,
            timestamp=1_700_000_000_000 + number * 7,
            key=b"key-%d" % number,
            value=b"value-%d" % number,
            headers=(("number", b"%d" % number),),
        )
        for number in range(count)
    ]


def at(records: Sequence[SourceRecord], first: int) -> list[SourceRecord]:
    """The same records in a row from another offset on."""
    return [replace(record, offset=first + number) for number, record in enumerate(records)]


def altered(record: SourceRecord, part: str) -> SourceRecord:
    """The same record with another key, value, headers or timestamp."""
    changes: dict[str, object] = {
        "key": b"other",
        "value": (record.value or b"")[:-1] + b"!",
        "headers": (("number", b"other"),),
        "timestamp": record.timestamp + 1,
    }
    return replace(record, **{part: changes[part]})  # type: ignore[arg-type]


def log(records: Sequence[SourceRecord], sizes: Sequence[int] = (), *, codec: int = 0, attributes: int = 0) -> bytes:
    """Batches of these sizes in a row; the rest is one batch."""
    raw, start = b"", 0
    for size in (*sizes, len(records)):
        part = records[start : start + size]
        if part:
            raw += batch(part, codec=codec, attributes=attributes, max_timestamp=max(each.timestamp for each in part))
        start += size
    return raw


def spans(raw: bytes) -> list[Span]:
    """A log as it is fetched."""
    return read_spans(memoryview(raw), (), read_committed=True)[0]


def whole_range(runs: Sequence[OffsetRun], *, to_end: int | None = None, source_next: int | None = None) -> CheckRange:
    """The range of a map; `to_end` is the target's end where nothing may follow."""
    runs = merge(runs)
    return CheckRange(
        source_first=runs[0].source_first,
        source_next=runs[-1].source_next if source_next is None else source_next,
        target_first=runs[0].target_first,
        target_next=runs[-1].target_next if to_end is None else to_end,
        records=sum(run.count for run in runs),
        encoded_runs=encode(runs),
        to_end=to_end is not None,
    )


def check_of(range_: CheckRange, **more: object) -> PartitionCheck:
    """A check of one range."""
    settings = {"target_end": range_.target_next, **more}
    return PartitionCheck(source=SOURCE, target=TARGET, ranges=(range_,), **settings)  # type: ignore[arg-type]


def blocks(raw: bytes) -> list[Span | RecordBlock]:
    """A log as it is fetched, with small batches gathered."""
    return read_blocks(memoryview(raw), (), read_committed=True)[0]


def compared(
    check: PartitionCheck, source: bytes, target: bytes, *, at_once: int = 1_000, gathered: bool = False
) -> RangeOutcome:
    """The whole comparison, with so many spans fed at a time.

    Args:
        gathered: whether the source's small batches are compared as blocks.
    """
    (range_,) = check.ranges
    comparer = RangeComparer(check, range_)
    mine = _parts(blocks(source) if gathered else spans(source), at_once)
    theirs = _parts(spans(target), at_once)
    comparer.walk()
    while not comparer.finished:
        assert comparer.needs_source or comparer.needs_target
        if comparer.needs_source:
            part = next(mine, ())
            comparer.feed_source(part, part[-1].next_offset if part else comparer.source.end)
        if comparer.needs_target:
            part = next(theirs, ())
            comparer.feed_target(part, part[-1].next_offset if part else comparer.target.end)
        comparer.walk()
    return comparer.outcome()


def places_of(outcome: RangeOutcome) -> list[tuple[DifferenceKind, int | None, int | None]]:
    """Kind and both offsets of all differences, none of which was only counted."""
    assert outcome.difference_count == len(outcome.differences)
    return [(each.kind, each.source_offset, each.target_offset) for each in outcome.differences]


def _parts(all_of_them: Sequence[Span | RecordBlock], size: int) -> Iterator[Sequence[Span | RecordBlock]]:
    for start in range(0, len(all_of_them), size):
        yield all_of_them[start : start + size]
