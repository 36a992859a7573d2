"""`./run bench planner`: how long a plan of 100,000 partitions takes, what it asks, and how even its bins are.

The clusters are simulated below librdkafka, each measurement in a process of its own: what counts is our own work, its
memory and the number of requests. With `--real N` a pair of real brokers with N topics is planned too.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AdminClient,
    NewTopic,
)
from rich.console import Console
from rich.table import Table

from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.bin_packing import least_possible
from mirror_lib.planning.facts import gather_facts
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import RunPlan
from mirror_lib.planning.plan import plan_round
from mirror_lib.sync.topics.flow import apply_flow_topics
from mirror_lib.topology.names import TopicPartition
from tools.bench.planner.simulated_kafka import TARGET_ID, SimulatedCluster, SimulatedLog, position_records, simulated
from tools.testbed.kafka_frames import request_header
from tools.testbed.proxy import KafkaProxy

GOAL_SECONDS, GOAL_BYTES, GOAL_BALANCE = 10.0, 1_000_000_000, 1.05
_TOPICS, _PARTITIONS, _TASKS = 20_000, 100_000, 16
_PARTITIONS_OF_REAL = 5
_WAIT_SECONDS = 300.0
#: Kafka's numbers of the requests that planning sends.
_API_NAMES = {
    0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 10: "FindCoordinator", 17: "SaslHandshake",
    18: "ApiVersions", 22: "InitProducerId", 23: "OffsetForLeaderEpoch", 32: "DescribeConfigs", 35: "DescribeLogDirs",
    60: "DescribeCluster", 75: "DescribeTopicPartitions",
}  # fmt: skip

#: Share of the partitions that have something to copy.
SHARES = {"first run": 1.0, "some": 0.3, "idle": 0.0}

_TEMPLATE = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
A->B.topics = {topics}
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
B.offset.storage.replication.factor = 1
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One plan."""

    what: str
    topics: int
    partitions: int
    #: Number of partitions with something to copy.
    planned: int
    #: Time of both: requests to both clusters and planning; and of the planner alone.
    seconds: float
    plan_seconds: float
    #: Of this process: what one core has to do for it.
    cpu_seconds: float
    #: By kind, over all brokers of both clusters.
    requests: dict[str, int]
    #: Peak memory of the process, including simulated clusters. None if the process did other things before.
    peak_bytes: int | None
    #: Of that, before anything was planned: the simulated clusters.
    base_bytes: int | None
    #: Weight of the heaviest bin by its theoretical minimum; None if nothing was planned.
    balance: float | None

    @property
    def memory(self) -> int | None:
        """Memory added by planning."""
        return None if self.peak_bytes is None or self.base_bytes is None else self.peak_bytes - self.base_bytes

    @property
    def reached(self) -> bool:
        """True if all goals are reached."""
        return (
            max(self.seconds, self.cpu_seconds) < GOAL_SECONDS
            and (self.memory or 0) < GOAL_BYTES
            and (self.balance or 1.0) <= GOAL_BALANCE
        )


def simulated_source(topics: int, partitions: int, share: float, *, seed: int = 1) -> SimulatedCluster:
    """Return topics of 1 to some hundred partitions, whose bytes follow Zipf's law.

    Args:
        share: of the partitions that have something to copy; the others are at their end. With 1, nothing was copied
            yet.
    """
    chance = random.Random(seed)
    counts = _partition_counts(topics, partitions)
    places = [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]
    chance.shuffle(places)
    logs = {}
    for rank, place in enumerate(places, start=1):
        size = round(2e11 / (rank + 100))
        end = max(size // 1_000, 1)
        behind = chance.random() < share
        position = None if share == 1 else round(end * chance.random()) - 1 if behind else end - 1
        logs[place] = SimulatedLog(end, size, position)
    return SimulatedCluster(counts, logs, Counter())


def simulated_target(source: SimulatedCluster) -> SimulatedCluster:
    """Return the remote topics of a source, with the copied records of each partition."""
    logs = {
        TopicPartition(f"A.{place.topic}", place.partition): SimulatedLog(
            0 if log.position is None else log.position + 1, log.bytes, None
        )
        for place, log in source.logs.items()
    }
    return SimulatedCluster({f"A.{name}": count for name, count in source.topics.items()}, logs, Counter(), TARGET_ID)


def _partition_counts(topics: int, partitions: int) -> dict[str, int]:
    """Return a few topics with many partitions, many with one."""
    shares = [1 / rank**0.6 for rank in range(1, topics + 1)]
    spare = partitions - topics
    counts = [1 + int(spare * share / sum(shares)) for share in shares]
    for number in range(partitions - sum(counts)):
        counts[number % topics] += 1
    return {f"topic-{number:05}": count for number, count in enumerate(counts)}


def measure_simulated(what: str, topics: int, partitions: int, tasks: int) -> Measured:
    """Plan once in this process."""
    source = simulated_source(topics, partitions, SHARES[what])
    target = simulated_target(source)
    positions = position_records(source, "A")
    with tempfile.TemporaryDirectory(prefix="mirror-planner-") as name, simulated(source, target, positions):
        flow = _flow(Path(name), "localhost:1", "localhost:2", "topic-.*")
        return _measure(what, flow, tasks, lambda: source.requests + target.requests, memory=True)


def _measure(
    what: str, flow: FlowConfig, tasks: int, requests: Callable[[], Counter[str]], *, memory: bool
) -> Measured:
    topology = flow_topology(flow)
    base = _peak_bytes()
    before, wall, cpu = requests(), time.perf_counter(), time.process_time()
    with FlowClusters.connect(flow) as clusters:
        facts, problems = gather_facts(flow, topology, clusters)
        gathered = time.perf_counter()
        plan = plan_round(flow.flow, facts, tasks_max=tasks, problems=problems)
    ended, cpu_ended = time.perf_counter(), time.process_time()
    if problems:
        raise RuntimeError(f"{len(problems)} partitions cannot be planned: {problems[0].error}")
    return Measured(
        what=what,
        topics=len({fact.source.topic for fact in facts}),
        partitions=len(facts),
        planned=len(plan.partitions),
        seconds=ended - wall,
        plan_seconds=ended - gathered,
        cpu_seconds=cpu_ended - cpu,
        requests=dict(requests() - before),
        peak_bytes=_peak_bytes() if memory else None,
        base_bytes=base if memory else None,
        balance=_balance(plan, tasks),
    )


def _balance(plan: RunPlan, tasks: int) -> float | None:
    loads = [sum(partition.weight for partition in bin_) for bin_ in plan.bins]
    if not loads:
        return None
    weights = [partition.weight for partition in plan.partitions]
    return max(loads) / least_possible(weights, min(tasks, len(weights)))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def real(topics: int, folder: Path) -> Iterator[Measured]:
    """Plan with a pair of real brokers: first, and again when everything is copied; requests pass a proxy."""
    seen: Counter[str] = Counter()
    with ExitStack() as stack:
        stack.enter_context(_counting(seen))
        addresses, clusters = [], []
        for side in ("source", "target"):
            cluster = KafkaCluster(
                side,
                directory=folder / side,
                listeners={"PLAINTEXT": "PLAINTEXT", "PROXY": "PLAINTEXT"},
                proxied=["PROXY"],
            )
            stack.enter_context(cluster)
            proxy = stack.enter_context(KafkaProxy.in_front_of(cluster, "PROXY"))
            del proxy
            addresses.append(f"localhost:{cluster.ports_of(cluster.node_ids[0]).advertised['PROXY']}")
            clusters.append(cluster)
        names = [f"many-{number:05}" for number in range(topics)]
        _create(clusters[0], names)
        flow = _flow(folder, addresses[0], addresses[1], "many-.*")
        _set_up_topics(flow)
        _produce(clusters[0], names)
        yield _measure("real brokers, first run", flow, _TASKS, lambda: Counter(seen), memory=False)
        _copy_all(flow, folder)
        yield _measure("real brokers, idle", flow, _TASKS, lambda: Counter(seen), memory=False)


@contextmanager
def _counting(seen: Counter[str]) -> Iterator[None]:
    def counted(frame: bytes) -> Any:
        header = request_header(frame)
        if header is not None:
            seen[_API_NAMES.get(header.api_key, str(header.api_key))] += 1
        return header

    with patch("tools.testbed.proxy_link.request_header", counted):
        yield


def _create(cluster: KafkaCluster, names: Sequence[str]) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 3})
    for start in range(0, len(names), 200):
        new = [NewTopic(name, _PARTITIONS_OF_REAL, 1) for name in names[start : start + 200]]
        created = client.create_topics(new, operation_timeout=_WAIT_SECONDS, request_timeout=_WAIT_SECONDS)
        for future in created.values():
            future.result(_WAIT_SECONDS)


def _copy_all(flow: FlowConfig, folder: Path) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    with Ledger.open(f"sqlite:///{folder}/ledger.sqlite3") as ledger:
        ledger.migrate()
        while True:
            report = replicate(
                flow,
                ledger=ledger,
                make_runner=lambda: lambda job: [each for n in range(len(job.bins)) for each in copy_bin(job, n)],
                options=RunOptions(),
            )
            if not report.errors:
                return
            if not report.errors[0].retriable or time.monotonic() > deadline:
                raise report.errors[0]
            time.sleep(2)


def _set_up_topics(flow: FlowConfig) -> None:
    """Set up topics: brokers need time to elect leaders of thousands of partitions at once."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            sync = apply_flow_topics(flow, flow_topology(flow))
        except MirrorError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
        else:
            if not sync.exit_code:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"the target's topics could not be set up: {sync.to_dict()}"[:1_000])
        time.sleep(2)


def _produce(cluster: KafkaCluster, names: Sequence[str]) -> None:
    """Write a record into every third topic's first partition: most of the others are empty, as in old clusters."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 50})
    for name in names[::3]:
        producer.produce(name, value=b"x" * 100, partition=0)
        producer.poll(0)
    if producer.flush(_WAIT_SECONDS):
        raise RuntimeError("the brokers did not take all records")


def _flow(folder: Path, source: str, target: str, topics: str) -> FlowConfig:
    path = folder / "mirror.properties"
    path.write_text(_TEMPLATE.format(source=source, target=target, topics=topics, folder=folder), encoding="utf-8")
    return load(path).flow("A->B")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure everything and print a table.

    Returns:
        The exit code: 0 if everything could be measured. Missed goals do not fail it: they depend on the machine.
    """
    parser = argparse.ArgumentParser(prog="bench planner", description=__doc__)
    parser.add_argument(
        "--topics", type=int, default=_TOPICS, metavar="N", help=f"Simulated topics (default {_TOPICS})."
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=_PARTITIONS,
        metavar="N",
        help=f"Partitions of each topic (default {_PARTITIONS}).",
    )
    parser.add_argument("--tasks", type=int, default=_TASKS, metavar="N", help=f"Number of bins (default {_TASKS}).")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="Topics on real brokers (default 0).")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    parser.add_argument("--one", choices=tuple(SHARES), help=argparse.SUPPRESS)
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if arguments.one:
        sizes = (arguments.topics, arguments.partitions, arguments.tasks)
        print(json.dumps(asdict(measure_simulated(arguments.one, *sizes))))
        return 0
    results = []
    progress = Console(stderr=True)
    for measured in _everything(arguments):
        progress.print(f"{measured.what}: {measured.seconds:.1f} s", highlight=False)
        results.append(measured)
    Console(width=None if sys.stdout.isatty() else 150).print(_table(results))
    for measured in results:
        asked = ", ".join(f"{count:,} {name}" for name, count in sorted(measured.requests.items()))
        print(f"Requests, {measured.what}: {asked}.")
    if arguments.json is not None:
        text = json.dumps([asdict(measured) for measured in results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0


def _everything(arguments: argparse.Namespace) -> Iterator[Measured]:
    for what in SHARES:
        yield _in_a_process(what, arguments)
    if arguments.real:
        with tempfile.TemporaryDirectory(prefix="mirror-planner-real-") as name:
            yield from real(arguments.real, Path(name))


def _in_a_process(what: str, arguments: argparse.Namespace) -> Measured:
    """Measure in a separate process: memory of one plan would hide the needs of the next one."""
    sizes = [f"--{name}={getattr(arguments, name)}" for name in ("topics", "partitions", "tasks")]
    command = [sys.executable, "-m", "tools.bench.planner", "--one", what, *sizes]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(answer.stdout))


def _table(results: Sequence[Measured]) -> Table:
    goal = f"under {GOAL_SECONDS:.0f} s and {GOAL_BYTES / 1e9:.0f} GB, bins within {GOAL_BALANCE - 1:.0%} of the best"
    table = Table(title=f"Planning at size (goal: {goal})", title_justify="left")
    for column in ("what", "topics", "partitions", "to copy", "seconds", "of it planner", "CPU seconds", "MB"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_column("requests", justify="right")
    table.add_column("heaviest bin", justify="right")
    table.add_column("goal")
    for each in results:
        table.add_row(
            each.what,
            f"{each.topics:,}",
            f"{each.partitions:,}",
            f"{each.planned:,}",
            f"{each.seconds:.1f}",
            f"{each.plan_seconds:.1f}",
            f"{each.cpu_seconds:.1f}",
            "" if each.memory is None else f"{each.memory / 1e6:,.0f}",
            f"{sum(each.requests.values()):,}",
            "" if each.balance is None else f"{each.balance:.3f} of the best",
            "reached" if each.reached else "NOT reached",
        )
    return table
