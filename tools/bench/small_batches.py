"""`./run bench small-batches`: what comparing small source batches costs, in memory, and how much blocks save.

Small batches of the source are compared with the larger ones that the relay gathers them into, once as the verification
does it (`records.record_blocks`), and once batch by batch, in the same process over the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mirror_lib.errors import Where
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock, read_blocks
from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.model import CheckRange, PartitionCheck
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.records.assemble import BatchAssembler, BatchSizes
from mirror_lib.records.header import HEADER_SIZE, parse_header
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.records.stamping import stamp
from mirror_lib.topology.names import TopicPartition
from tools.bench.workloads.workload import BatchMill, Workload, select

_DEFAULT_WORKLOADS = "200b-single,200b-five"
_CHUNK = 4 * 1024 * 1024
_FIRST_TIMESTAMP = 1_700_000_000_000
#: The configuration's defaults.
_PASSTHROUGH, _GATHERED, _LARGEST = 16 * 1024, 512 * 1024, 1_048_588

_Read = Callable[[bytes], Sequence[Span | RecordBlock]]


@dataclass(frozen=True, slots=True)
class Logs:
    """Both sides as fetched."""

    source: tuple[bytes, ...]
    target: tuple[bytes, ...]
    records: int


def logs_of(workload: Workload) -> Logs:
    """Return a partition of the workload, and its copy by the relay."""
    assembler = BatchAssembler(
        where=Where(topic=workload.name, partition=0),
        offsets=range(workload.records),
        sizes=BatchSizes(_PASSTHROUGH, _GATHERED, _LARGEST),
        read_committed=False,
    )
    source = _chunks(BatchMill(workload).batches(0, 1, _FIRST_TIMESTAMP))
    ready = [batch for chunk in source for batch in assembler.feed(chunk)]
    held = assembler.flush()
    for batch in (gathered := [*ready, *([held] if held else [])]):
        stamp(batch, 7, 0, 0)
    return Logs(source, _chunks(batch.payload for batch in gathered), workload.records)


def _chunks(batches: Any) -> tuple[bytes, ...]:
    """Return batches at their offsets, in pieces of the size of a fetch."""
    chunks, chunk, offset = [], bytearray(), 0
    for batch in batches:
        batch[0:8] = offset.to_bytes(8, "big")
        offset += parse_header(batch).count
        chunk += batch
        if len(chunk) >= _CHUNK - HEADER_SIZE:
            chunks.append(bytes(chunk))
            chunk = bytearray()
    return (*chunks, bytes(chunk)) if chunk else tuple(chunks)


def compare(logs: Logs, read: _Read) -> None:
    """Compare all of it; `read` parses the data that is fetched from the source."""
    run = OffsetRun(0, 0, logs.records)
    range_ = CheckRange(0, logs.records, 0, logs.records, logs.records, encode((run,)), to_end=True)
    places = TopicPartition("source", 0), TopicPartition("target", 0)
    check = PartitionCheck(source=places[0], target=places[1], ranges=(range_,), target_end=logs.records)
    comparer = RangeComparer(check, range_)
    source, target = iter(logs.source), iter(logs.target)
    comparer.walk()
    while not comparer.finished:
        if comparer.needs_source:
            mine = read(next(source))
            comparer.feed_source(mine, mine[-1].next_offset)
        if comparer.needs_target:
            theirs = _one_by_one(next(target))
            comparer.feed_target(theirs, theirs[-1].next_offset)
        comparer.walk()
    outcome = comparer.outcome()
    if outcome.records != logs.records or outcome.difference_count:
        raise AssertionError(f"the copy is not equal: {outcome}")


def _one_by_one(chunk: bytes) -> Sequence[Span]:
    return read_spans(memoryview(chunk), (), read_committed=False)[0]


def _as_blocks(chunk: bytes) -> Sequence[Span | RecordBlock]:
    return read_blocks(memoryview(chunk), (), read_committed=False)[0]


def _microseconds(logs: Logs, read: _Read, rounds: int) -> float:
    """Return the CPU time for a record, of the best round."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        compare(logs, read)
        best = min(best, time.process_time() - began)
    return best / logs.records * 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; return the exit code, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="bench.small_batches", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", default=_DEFAULT_WORKLOADS, help="Workloads to run, separated by commas.")
    parser.add_argument("--records", type=int, default=100_000, help="Records of each workload.")
    parser.add_argument("--rounds", type=int, default=5, help="Number of rounds; the best one counts.")
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    try:
        workloads = select(arguments.workloads, quick=False)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for workload in workloads:
        logs = logs_of(workload.scaled(arguments.records))
        before, after = (_microseconds(logs, read, arguments.rounds) for read in (_one_by_one, _as_blocks))
        result = {
            "workload": workload.name,
            "microseconds_per_record": {"batch by batch": round(before, 2), "blocks": round(after, 2)},
            "ratio": round(before / after, 2),
        }
        sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
