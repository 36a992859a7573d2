"""`./run bench same-offsets`: how fast offsets without a record are filled with `mirror.offsets = same`.

Holes: ten records between them, on many partitions, in one process and whole runs. Starts: filler against a loop that
sends one prebuilt batch to as many partitions. Copies of sources without holes: `./run bench against . --set
mirror.offsets=same`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import Producer

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.features.same_offsets.padding import MOST_RECORDS, filler, pad
from mirror_lib.topology.names import FlowId, TopicPartition
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.clusters.topics import Topics

_TOPIC, _BETWEEN = "holes", 10
_RETRY_SECONDS, _TIMEOUT_MS = 60.0, 30_000
_FILLED_AT_A_TIME = 8
#: The first rounds warm the brokers up.
_WARM_UP, _ROUNDS = 1, 4

_Way = Callable[[RawClient, str], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Holes:
    """A copy of a source with holes of one offset."""

    partitions: int
    holes: int
    records: int
    #: Of the copy in its process, without the plan.
    seconds: float

    @property
    def per_second(self) -> float:
        return self.holes / self.seconds


@dataclass(frozen=True, slots=True)
class Starts:
    """Filler by the product, and the same batches by a loop without retries, sequence numbers and producer ids."""

    partitions: int
    offsets: int
    filled_per_second: float
    loop_per_second: float
    #: For a billion offsets.
    disk_megabytes: float

    @property
    def share(self) -> float:
        return self.filled_per_second / self.loop_per_second


def measure_holes(pair: Pair, folder: Path, *, partitions: int, each: int) -> Holes:
    """Write `each` transactions of ten records to every partition, and copy them."""
    pair.source.create(_TOPIC, partitions)
    _write(pair.source, partitions, each)
    path = folder / "same.properties"
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": pair.source.bootstrap_servers,
        "B.bootstrap.servers": pair.target.bootstrap_servers,
        "A->B.enabled": "true",
        "A->B.topics": _TOPIC,
        "A->B.mirror.offsets": "same",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    done = subprocess.run(
        [sys.executable, "-m", "tools.bench.one_copy", str(path), "A->B"], check=True, capture_output=True, text=True
    )
    spent = json.loads(done.stdout)
    records = partitions * each * _BETWEEN
    if spent["records"] != records or pair.target.records(f"A.{_TOPIC}", partitions) != records + partitions * each:
        raise AssertionError(f"the copy is not complete: {spent}")
    return Holes(partitions, partitions * each, records, spent["seconds"])


def _write(source: Topics, partitions: int, transactions: int) -> None:
    producer = Producer({"bootstrap.servers": source.bootstrap_servers, "transactional.id": "holes", "linger.ms": 1})
    producer.init_transactions(_RETRY_SECONDS)
    for _ in range(transactions):
        producer.begin_transaction()
        for partition in range(partitions):
            for _ in range(_BETWEEN):
                producer.produce(_TOPIC, bytes(100), partition=partition)
        producer.commit_transaction(_RETRY_SECONDS)


def measure_starts(pair: Pair, *, partitions: int, offsets: int) -> Starts:
    """Fill as many partitions of two topics, in turn by the product and by the loop."""
    spent: dict[str, list[float]] = {"filled": [], "loop": []}
    ways: dict[str, _Way] = {
        "filled": lambda client, topic: pad(
            client,
            FlowId("A", "B"),
            {TopicPartition(topic, number): (0, offsets) for number in range(partitions)},
            retry_seconds=_RETRY_SECONDS,
        ),
        "loop": lambda client, topic: _loop(client, topic, partitions, offsets),
    }
    used = 0
    for number in range(_WARM_UP + _ROUNDS):
        for name in sorted(ways, reverse=bool(number % 2)):
            topic = f"{name}-{number}"
            pair.target.create(topic, partitions)
            spent[name].append(asyncio.run(_timed(pair, topic, ways[name])))
            if name == "filled":
                used = pair.target.bytes_on_disk(topic)
            pair.target.delete([topic])
    total = partitions * offsets
    filled, loop = (statistics.median(spent[name][_WARM_UP:]) for name in ("filled", "loop"))
    return Starts(partitions, total, total / filled, total / loop, used / total * 1e9 / 2**20)


async def _timed(pair: Pair, topic: str, way: _Way) -> float:
    async with open_clients(Connection("B", (pair.target.bootstrap_servers,))) as (client,):
        await client.refresh_leaders({topic})
        began = time.monotonic()
        await way(client, topic)
        return time.monotonic() - began


async def _loop(client: RawClient, topic: str, partitions: int, offsets: int) -> None:
    batch, limit = filler(MOST_RECORDS).payload, asyncio.Semaphore(_FILLED_AT_A_TIME)

    async def one(number: int) -> None:
        leader = client.leader(TopicPartition(topic, number))
        assert leader is not None
        async with limit:
            for _ in range(offsets // MOST_RECORDS):
                (produced,) = await client.produce(leader, [(topic, number, batch)], timeout_ms=_TIMEOUT_MS)
                assert produced.error_code == 0

    await asyncio.gather(*(one(number) for number in range(partitions)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; return the exit code, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="bench.same_offsets", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", type=int, default=100, help="Partitions with holes (100).")
    parser.add_argument("--each", type=int, default=200, help="Holes of each partition (200).")
    parser.add_argument("--offsets", type=int, default=20_000_000, help="Offsets to fill in each of 8 partitions.")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name, started_pair(Path(name)) as pair:
        holes = measure_holes(pair, Path(name), partitions=arguments.partitions, each=arguments.each)
        sys.stdout.write(json.dumps({**asdict(holes), "per_second": round(holes.per_second)}) + "\n")
        starts = measure_starts(pair, partitions=_FILLED_AT_A_TIME, offsets=arguments.offsets)
        sys.stdout.write(json.dumps({**asdict(starts), "share": round(starts.share, 3)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
