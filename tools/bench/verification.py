"""`./run bench verification`: how fast the proof that a copy is equal is, and whether it finds what it must.

Our comparison against a pair of confluent-kafka consumers whose messages are compared one by one, both in this process
and over the same two topics; then one record altered, one missing, one twice and two swapped among millions.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from mirror_lib.config.loader import load as load_config
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.jars import KAFKA_VERSION
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, verify_flow
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.topics.flow import apply_flow_topics
from tests.support.flows import copy_here
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.copiers.settings import Copier, CopySetup, properties, render
from tools.bench.errors import BenchError
from tools.bench.machine.description import describe, java_version
from tools.bench.workloads.loading import load
from tools.bench.workloads.workload import Workload, select

#: Goals: uncompressed values that one core compares in a second, and as a multiple of the consumers'.
GOAL_MEGABYTES, GOAL_RATIO = 300.0, 3.0
_DEFAULT_WORKLOADS = "1kb-none,1kb-lz4,100b-lz4"
_MESSAGES_AT_ONCE = 10_000
_TIMEOUT = 60.0
_CONSUMER: dict[str, Any] = {
    "group.id": "bench-verification",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.max.bytes": 64 * 1024 * 1024,
    "receive.message.max.bytes": 65 * 1024 * 1024,
    "max.partition.fetch.bytes": 4 * 1024 * 1024,
    "queued.max.messages.kbytes": 64 * 1024,
    "log_level": 3,
}
#: Changes to the partitions of the tampered copy, in their order; the others are unchanged.
_TAMPERING = ("altered", "missing", "extra", "reordered")


@dataclass(frozen=True, slots=True)
class Speed:
    """One comparison of a whole topic."""

    records: int
    value_bytes: int
    seconds: float
    #: Of this process with all its threads, so that one core's speed is known on a busy machine.
    cpu_seconds: float

    @property
    def megabytes_per_core(self) -> float:
        """Uncompressed values of one side, in 10^6 bytes per second of CPU."""
        return self.value_bytes / self.cpu_seconds / 1e6


@dataclass(frozen=True, slots=True)
class Result:
    """One workload."""

    workload: str
    ours: Speed
    consumers: Speed

    @property
    def ratio(self) -> float:
        """CPU time of the consumers for a record as a multiple of this project's."""
        return self.consumers.cpu_seconds / self.ours.cpu_seconds


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in a tampered copy."""

    records: int
    expected: tuple[tuple[int, str], ...]
    found: tuple[tuple[int, str], ...]

    @property
    def complete(self) -> bool:
        """True if all of them were found, and nothing else."""
        return self.expected == self.found


def measured(records: int, value_bytes: int, work: Callable[[], None]) -> Speed:
    """Do the work once and measure its times."""
    began, used = time.monotonic(), time.process_time()
    work()
    return Speed(records, value_bytes, time.monotonic() - began, time.process_time() - used)


def run(workloads: Sequence[Workload], *, partitions: int, tamper_records: int, log: Callable[[str], None]) -> Any:
    """Measure the workloads, then tamper; everything that was started has ended when this returns or raises."""
    results: list[Result] = []
    with _folder() as folder, started_pair(folder) as pair:
        for workload in workloads:
            log(f"{workload.name}: writing and copying {workload.records:,} records")
            flow, ledger, remote = _copied(pair, workload, partitions, folder)
            pair.settle()
            results.append(_measure(pair, workload, partitions, flow, ledger, remote))
            log(f"{workload.name}: {results[-1].ours.megabytes_per_core:,.0f} MB/s per core")
            pair.source.delete([workload.name])
            pair.target.delete([remote])
        findings = None
        if tamper_records:
            # A separate topic: positions of a deleted one would refer to that.
            workload = replace(select("100b-lz4", quick=False)[0].scaled(tamper_records), name="tampered")
            log(f"tampering with a copy of {tamper_records:,} records")
            flow, ledger, remote = _copied(pair, workload, partitions, folder)
            _tamper(pair, remote, partitions)
            findings = _findings(_verify(flow, ledger), tamper_records)
    return results, findings


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-verification-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copied(pair: Pair, workload: Workload, partitions: int, folder: Path) -> tuple[FlowConfig, Ledger, str]:
    """Write a workload and copy it with the relay; return the flow, its ledger and the copy's name."""
    pair.source.create(workload.name, partitions)
    load(pair.source.bootstrap_servers, workload, partitions)
    setup = CopySetup(
        copier=Copier.MIRROR,
        round=1,
        topic=workload.name,
        source_bootstrap=pair.source.bootstrap_servers,
        target_bootstrap=pair.target.bootstrap_servers,
        tasks=2,
    )
    path = folder / f"{workload.name}-{workload.records}.properties"
    path.write_text(render(properties(setup)))
    flow = load_config(path).flow(setup.flow)
    ledger = Ledger.open(f"sqlite:///{path.with_suffix('.sqlite3')}")
    ledger.migrate()
    apply_flow_topics(flow, flow_topology(flow))
    report = replicate(flow, ledger=ledger, make_runner=lambda: copy_here, options=RunOptions(trigger="bench"))
    if report.errors or report.records != workload.records:
        raise BenchError(f"the copy failed: {report.records} records, {report.errors[:1]}.")
    return flow, ledger, setup.target_topic


def _measure(pair: Pair, workload: Workload, partitions: int, flow: FlowConfig, ledger: Ledger, remote: str) -> Result:
    def ours() -> None:
        report = _verify(flow, ledger)
        if report.exit_code or report.records != workload.records:
            raise BenchError(f"the copy is not equal: {report.sentence}")

    def consumers() -> None:
        count = compare_with_consumers(pair, workload.name, remote, partitions, workload.records)
        if count != workload.records:
            raise BenchError(f"the consumers compared {count} of {workload.records} records.")

    return Result(
        workload.name,
        measured(workload.records, workload.payload_bytes, ours),
        measured(workload.records, workload.payload_bytes, consumers),
    )


def _verify(flow: FlowConfig, ledger: Ledger) -> VerifyReport:
    return verify_flow(flow, ledger=ledger, make_runner=lambda _: run_locally(1), options=VerifyOptions(tasks_max=1))


def compare_with_consumers(pair: Pair, topic: str, remote: str, partitions: int, records: int) -> int:
    """Read both topics with a consumer each and compare message by message, like a careful script.

    Returns:
        Number of records that were equal, in order.
    """
    sides = [
        _Side(pair.source.bootstrap_servers, topic, partitions),
        _Side(pair.target.bootstrap_servers, remote, partitions),
    ]
    ours, theirs = sides
    equal = 0
    try:
        deadline = time.monotonic() + _TIMEOUT
        while equal < records and time.monotonic() < deadline:
            for side in sides:
                side.read()
            for partition in range(partitions):
                mine, others = ours.waiting[partition], theirs.waiting[partition]
                count = min(len(mine), len(others))
                if not count:
                    continue
                deadline = time.monotonic() + _TIMEOUT
                for one, other in zip(islice(mine, count), islice(others, count), strict=True):
                    if (
                        one.offset() != other.offset()
                        or one.key() != other.key()
                        or one.value() != other.value()
                        or one.timestamp() != other.timestamp()
                        or one.headers() != other.headers()
                    ):
                        raise BenchError(f"{topic}-{partition} differs at offset {one.offset()}.")
                del mine[:count], others[:count]
                equal += count
    finally:
        for side in sides:
            side.consumer.close()
    return equal


class _Side:
    """One topic read by a consumer; a partition that is far ahead of the other side waits."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.consumer = Consumer({**_CONSUMER, "bootstrap.servers": servers})
        self.consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self.waiting: list[list[Message]] = [[] for _ in range(partitions)]

    def read(self) -> None:
        if sum(len(messages) for messages in self.waiting) > 20 * _MESSAGES_AT_ONCE:
            return
        for message in self.consumer.consume(_MESSAGES_AT_ONCE, timeout=0.05):
            if message.error() is not None:
                raise BenchError(f"a topic cannot be read: {message.error()}.")
            self.waiting[message.partition() or 0].append(message)


def _tamper(pair: Pair, remote: str, partitions: int) -> None:
    """Write a copy of the copy with one change in each of its first four partitions, and replace it."""
    scratch = f"{remote}-scratch"
    for source, target, change in ((remote, scratch, True), (scratch, remote, False)):
        pair.target.create(target, partitions) if target == scratch else _recreate(pair, target, partitions)
        _rewrite(pair.target.bootstrap_servers, source, target, partitions, change=change)
    pair.target.delete([scratch])


def _recreate(pair: Pair, topic: str, partitions: int) -> None:
    pair.target.delete([topic])
    pair.target.create(topic, partitions)


def _rewrite(servers: str, source: str, target: str, partitions: int, *, change: bool) -> None:
    reader = _Side(servers, source, partitions)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 20,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 3,
        }
    )
    ends = [
        reader.consumer.get_watermark_offsets(TopicPartition(source, partition))[1] for partition in range(partitions)
    ]
    held: dict[int, Message] = {}
    done = [0] * partitions
    while any(count < end for count, end in zip(done, ends, strict=True)):
        reader.read()
        for partition, messages in enumerate(reader.waiting):
            for message in messages:
                place = ends[partition] // 2 if change else -1
                for changed, value in _changed(message, partition, place, held):
                    _send(producer, target, partition, changed, value)
            done[partition] += len(messages)
            messages.clear()
    producer.flush(_TIMEOUT)
    reader.consumer.close()


def _changed(
    message: Message, partition: int, place: int, held: dict[int, Message]
) -> Iterator[tuple[Message, bytes | None]]:
    """Yield what is written to the target instead of a message: the changes are in the middle of partitions 0 to 3."""
    offset, value = message.offset(), message.value()
    fault = _TAMPERING[partition] if partition < len(_TAMPERING) and place >= 0 else None
    if fault == "altered" and offset == place:
        yield message, (value or b"")[:-1] + b"!"
    elif fault == "missing" and offset == place:
        return
    elif fault == "extra" and offset == place:
        yield message, value
        yield message, value
    elif fault == "reordered" and offset == place:
        held[partition] = message
    elif fault == "reordered" and offset == place + 1:
        yield message, value
        yield held[partition], held[partition].value()
    else:
        yield message, value


def _send(producer: Producer, topic: str, partition: int, message: Message, value: bytes | None) -> None:
    while True:
        try:
            producer.produce(
                topic,
                value=value,
                key=message.key(),
                headers=message.headers(),
                partition=partition,
                timestamp=message.timestamp()[1],
            )
            producer.poll(0)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _findings(report: VerifyReport, records: int) -> Findings:
    partitions = {verdict.source.partition for verdict in report.verdicts}
    return Findings(
        records=records,
        expected=tuple((number, kind) for number, kind in enumerate(_TAMPERING) if number in partitions),
        found=tuple(
            (verdict.source.partition, each.kind.value) for verdict in report.verdicts for each in verdict.differences
        ),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run it.

    Returns:
        The exit code: 0 if all changes were found, 1 if not, 2 for wrong arguments. Speeds depend on the machine and
        do not fail it.
    """
    parser = argparse.ArgumentParser(prog="bench.verification", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workloads", default=_DEFAULT_WORKLOADS, help="Workloads to run, separated by commas.")
    parser.add_argument("--scale", type=float, default=1.0, help="Multiply the number of records by this factor.")
    parser.add_argument(
        "--partitions", type=int, default=4, help="Partitions of each topic; 4 are needed for all kinds of tampering."
    )
    parser.add_argument("--tamper", type=int, default=5_000_000, help="Records of the tampered copy; 0: none.")
    parser.add_argument("--json", type=Path, help="Write all measurements to this file, as JSON.")
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    try:
        workloads = select(arguments.workloads, quick=False)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    workloads = tuple(each.scaled(max(round(each.records * arguments.scale), 1)) for each in workloads)

    def log(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    try:
        machine = describe(java=java_version(), kafka=KAFKA_VERSION)
        results, findings = run(workloads, partitions=arguments.partitions, tamper_records=arguments.tamper, log=log)
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    document = {
        "machine": asdict(machine),
        "goals": {"megabytes_per_core": GOAL_MEGABYTES, "ratio": GOAL_RATIO},
        "speeds": [_result_row(result) for result in results],
        "tampering": None if findings is None else {**asdict(findings), "complete": findings.complete},
    }
    text = json.dumps(document, indent=2)
    if arguments.json is not None:
        arguments.json.write_text(text + os.linesep, encoding="utf-8")
    sys.stdout.write(text + "\n")
    return 0 if findings is None or findings.complete else 1


def _result_row(result: Result) -> dict[str, Any]:
    return {
        "workload": result.workload,
        "ours": {**asdict(result.ours), "megabytes_per_core": round(result.ours.megabytes_per_core, 1)},
        "consumers": {**asdict(result.consumers), "megabytes_per_core": round(result.consumers.megabytes_per_core, 1)},
        "ratio": round(result.ratio, 2),
        "reached": result.ours.megabytes_per_core >= GOAL_MEGABYTES and result.ratio >= GOAL_RATIO,
    }


if __name__ == "__main__":
    sys.exit(main())
