"""Batches for a target with the source's offsets: none has a hole between the offsets of its records."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tests.support.records.record_batches import SourceRecord, assembler, batch, fed, message_set, read_with_aiokafka

CODECS = st.sampled_from([0, 1, 4])
#: Offsets from each record to the next: most have no hole between them.
STEPS = st.lists(st.sampled_from([1, 1, 1, 1, 2, 5]), min_size=1, max_size=40)
SIZES = st.lists(st.integers(1, 6), min_size=40, max_size=40)


@given(STEPS, SIZES, CODECS, st.sampled_from([2, 2, 0, 1]), st.sampled_from([0, 100, 10_000]), st.integers(150, 2_000))
def test_all_records_arrive_in_batches_without_holes(
    steps: list[int], sizes: list[int], codec: int, magic: int, passthrough: int, largest: int
) -> None:
    records = [SourceRecord(offset, value=b"v%d" % offset) for offset in accumulate(steps)]
    log, rest = b"", list(records)
    for size in sizes:
        part, rest = rest[:size], rest[size:]
        if part and magic == 2:
            log += batch(part, codec=codec)
        elif part:
            log += b"".join(message_set([each], magic=magic) for each in part)
    subject = assembler(dense=True, passthrough_min_bytes=passthrough, batch_max_bytes=largest)

    out = fed(subject, bytearray(log))

    assert subject.failure is None
    assert all(len(ready.source_runs) == 1 for ready in out)
    found = [
        (ready.source_runs[0][0] + number, value)
        for ready in out
        for number, (_, _, _, value, _) in enumerate(read_with_aiokafka(ready.payload))
    ]
    assert found == [(each.offset, each.value) for each in records]
