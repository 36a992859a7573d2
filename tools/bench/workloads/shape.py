"""Checks the batches in a log, to be sure that a workload is as specified."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field

from tools.bench.errors import BenchError
from tools.bench.workloads.workload import Workload

#: Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and last timestamp, producer id,
#: epoch, sequence, count: the header of message format v2 (KIP-98).
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_CODEC_BITS = 0x07


@dataclass(slots=True)
class Shape:
    """Batches counted by their headers."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    #: Codec number -> batches.
    codecs: Counter[int] = field(default_factory=Counter)
    #: Records in a batch -> batches.
    sizes: Counter[int] = field(default_factory=Counter)

    def add(self, data: memoryview) -> int | None:
        """Count the whole batches in one partition's fetch response; return the offset after the last one.

        None if there is no whole batch.
        """
        position, next_offset = 0, None
        while position + _HEADER.size <= len(data):
            base, length, _, magic, _, attributes, delta, *_, count = _HEADER.unpack_from(data, position)
            size = _BEFORE_LENGTH + length
            if position + size > len(data):
                break
            if magic != 2:
                raise BenchError(f"a batch at offset {base} has magic {magic}, which no loader of this bench writes.")
            self.batches += 1
            self.records += count
            self.bytes += size
            self.codecs[attributes & _CODEC_BITS] += 1
            self.sizes[count] += 1
            position += size
            next_offset = base + delta + 1
        return next_offset

    @property
    def mean_batch_bytes(self) -> float:
        """As written in the log."""
        return self.bytes / self.batches if self.batches else 0.0


def expected_shape(workload: Workload, partitions: int) -> tuple[Counter[int], Counter[int]]:
    """Return the required number of batches by codec and by number of records."""
    sizes: Counter[int] = Counter()
    for partition in range(partitions):
        whole, rest = divmod(workload.records_of(partition, partitions), workload.records_per_batch)
        sizes[workload.records_per_batch] += whole
        if rest:
            sizes[rest] += 1
    sizes += Counter()  # Drops zero counts.
    return Counter({workload.codec.attribute: sizes.total()}), sizes


def check_shape(shape: Shape, workload: Workload, partitions: int) -> None:
    """Check that the log holds the workload.

    Raises:
        BenchError: batches, records or codecs differ from the specification.
    """
    codecs, sizes = expected_shape(workload, partitions)
    if (shape.records, shape.codecs, shape.sizes) != (workload.records, codecs, sizes):
        raise BenchError(
            f"{workload.name} was loaded wrongly: {shape.records} records, codecs {dict(shape.codecs)}, "
            f"batch sizes {dict(shape.sizes.most_common(5))}; expected {workload.records} records, codecs "
            f"{dict(codecs)}, batch sizes {dict(sizes)}."
        )
