"""`./run bench offset-map`: how large the offset map is in the ledger, and how fast lookups are."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.run_columns import RunColumns

_FLOW, _TOPIC = "primary->backup", "orders"
_LOOKUPS = 1_000_000
_REPETITIONS = 5
_RUN_ID = "3f1c7a52-6f0e-4d0e-9a53-0d5f0f6b7c11"

#: Returns which of this many source offsets have a copied record.
Kept = Callable[[int, np.random.Generator], np.ndarray]


@dataclass(frozen=True, slots=True)
class Measured:
    """One kind of map."""

    kind: str
    records: int
    runs: int
    #: Rows in the ledger, before and after it merged small ones automatically.
    rows: int
    bytes_per_million_records: float
    million_lookups_per_second: float
    #: The same for ascending offsets, like those of a checkpoint or a verification.
    ascending_million_lookups_per_second: float


def dense(offsets: int, _: np.random.Generator) -> np.ndarray:
    """Return every offset."""
    return np.ones(offsets, bool)


def compacted(offsets: int, random: np.random.Generator) -> np.ndarray:
    """Drop 30 % of the offsets at random."""
    kept: np.ndarray = random.random(offsets) >= 0.3
    return kept


def transactional(offsets: int, _: np.random.Generator) -> np.ndarray:
    """Drop the offset of a marker after every 100 records."""
    kept: np.ndarray = np.arange(offsets) % 101 != 100
    return kept


KINDS: tuple[Kept, ...] = (dense, compacted, transactional)


def measure(kind: Kept, records: int, flow_runs: int) -> Measured:
    """Store a partition's map like this many runs of a flow, and look offsets up in it."""
    random = np.random.default_rng(7)
    kept = kind(round(records * 1.5), random)
    source = np.flatnonzero(kept)[:records]
    with tempfile.TemporaryDirectory() as folder, Ledger.open(f"sqlite:///{Path(folder) / 'ledger.sqlite3'}") as ledger:
        ledger.migrate()
        for row in _rows(source, flow_runs):
            ledger.append_segments([row])
        (size,) = ledger.map_sizes(_FLOW)
        found = OffsetMap.of_segments(ledger.segments(_FLOW, _TOPIC, 0))
    assert found.records == records
    wanted = random.integers(0, int(source[-1]), _LOOKUPS)
    return Measured(
        kind.__name__,
        records,
        len(found.columns),
        size.segments,
        round(size.bytes_per_million_records, 1),
        _speed(found, wanted),
        _speed(found, np.sort(wanted)),
    )


def _rows(source: np.ndarray, flow_runs: int) -> Iterator[SegmentRow]:
    target_first = 0
    for part in np.array_split(source, flow_runs):
        begins = np.flatnonzero(np.diff(part, prepend=part[0] - 2) != 1)
        counts = np.diff(begins, append=len(part))
        columns = RunColumns(part[begins], target_first + begins, counts)
        yield SegmentRow(
            flow=_FLOW,
            topic=_TOPIC,
            partition=0,
            source_first=int(part[0]),
            source_next=int(part[-1]) + 1,
            target_first=target_first,
            target_next=target_first + len(part),
            records=len(part),
            runs=None if len(columns) == 1 else columns.encode(),
            run_id=_RUN_ID,
        )
        target_first += len(part)


def _speed(found: OffsetMap, wanted: np.ndarray) -> float:
    """Return million lookups a second on one core, the median of some."""
    seconds = []
    for _ in range(_REPETITIONS):
        before = time.process_time()
        found.to_target_many(wanted)
        seconds.append(time.process_time() - before)
    return round(len(wanted) / sorted(seconds)[_REPETITIONS // 2] / 1e6, 1)


def main(argv: Sequence[str]) -> int:
    """Print a JSON document."""
    parser = argparse.ArgumentParser(prog="bench.offset_map", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000, help="Records of each map (default 5,000,000).")
    parser.add_argument("--runs", type=int, default=200, help="Number of runs that wrote the map (default 200).")
    arguments = parser.parse_args(argv)
    found = [asdict(measure(kind, arguments.records, arguments.runs)) for kind in KINDS]
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
