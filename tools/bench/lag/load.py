"""`python -m tools.bench.lag.load`: a producer with a constant rate of bytes per second, like a live one.

A process of its own, so that neither the observer nor the copiers share an interpreter with it. Records carry the time
at which they were handed to the client: what waits in the client's buffer counts as lag.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from confluent_kafka import KafkaError, Message, Producer

from mirror_lib.errors import MirrorError
from tools.bench.errors import BenchError
from tools.bench.workloads.payload import Payloads

_SEED = 20_260_229
#: Different values; they repeat.
_VALUES = 2_000
_TICK_SECONDS = 0.01
_FLUSH_SECONDS = 60.0
#: The time to the acknowledgement is measured for one of this many records.
_SAMPLE = 500


@dataclass(frozen=True, slots=True)
class Load:
    """The load to write."""

    bootstrap_servers: str
    topic: str
    partitions: int
    bytes_per_second: int
    seconds: float
    value_bytes: int
    compression: str

    @property
    def records_per_second(self) -> float:
        """Records per second: bytes of values count."""
        return self.bytes_per_second / self.value_bytes

    def command_line(self) -> list[str]:
        """Return the command line of this module, without the interpreter."""
        return [f"--{name.replace('_', '-')}={value}" for name, value in asdict(self).items()]


@dataclass(frozen=True, slots=True)
class Written:
    """The written load. Times in epoch milliseconds."""

    began: int
    ended: int
    records: int
    value_bytes: int
    #: Largest delay of the producer against its schedule: above a fraction of a second it was not the requested load.
    behind_seconds: float
    #: Time from passing a record to the client to its acknowledgement by the source, the largest of the samples.
    acknowledged_seconds: float

    @property
    def bytes_per_second(self) -> float:
        """The reached rate, in bytes of values."""
        return self.records * self.value_bytes * 1000 / max(self.ended - self.began, 1)


def due(elapsed: float, rate: float, most: int) -> int:
    """Return how many records must have been passed to the client by now."""
    return min(int(elapsed * rate), most)


def write(load: Load) -> Written:
    """Write for the given time, to the partitions in turn, and wait until all is acknowledged.

    Raises:
        BenchError: a record was not acknowledged.
    """
    producer = Producer(
        {
            "bootstrap.servers": load.bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": load.compression,
            "log_level": 3,
        }
    )
    payloads = Payloads(_SEED, load.value_bytes)
    values = [payloads.next() for _ in range(_VALUES)]
    slowest, failed = 0.0, ""

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal slowest, failed
        if error is not None:
            failed = failed or str(error)
        else:
            slowest = max(slowest, message.latency() or 0.0)

    # Connecting is not part of the load.
    producer.list_topics(load.topic, timeout=_FLUSH_SECONDS)
    most, done, behind = round(load.seconds * load.records_per_second), 0, 0.0
    clock, began = time.monotonic(), int(time.time() * 1000)
    while done < most:
        wanted = due(time.monotonic() - clock, load.records_per_second, most)
        for number in range(done, wanted):
            key, value = values[number % _VALUES]
            where, sample = number % load.partitions, number % _SAMPLE == 0
            try:
                if sample:
                    producer.produce(load.topic, value, key, where, on_delivery=delivered)
                else:
                    producer.produce(load.topic, value, key, where)
            except BufferError:
                # The source is too slow: the rest is late, and `behind_seconds` shows by how much.
                wanted = number
                break
        done = wanted
        producer.poll(0)
        behind = max(behind, time.monotonic() - clock - done / load.records_per_second if done < most else 0.0)
        time.sleep(_TICK_SECONDS)
    ended = int(time.time() * 1000)
    if producer.flush(_FLUSH_SECONDS):
        failed = failed or "not everything was acknowledged in time"
    if failed:
        raise BenchError(f"the load could not be written: {failed}.")
    return Written(began, ended, done, load.value_bytes, round(behind, 3), round(slowest, 3))


def main(argv: Sequence[str] | None = None) -> int:
    """Write, and print the result as JSON."""
    parser = argparse.ArgumentParser(prog="bench.lag.load", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--bytes-per-second", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--value-bytes", type=int, required=True)
    parser.add_argument("--compression", required=True)
    chosen = parser.parse_args(argv)
    try:
        written = write(Load(**vars(chosen)))
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(json.dumps(asdict(written)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
