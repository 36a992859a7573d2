"""`./run bench control-plane`: how long groups, topic configs and ACLs take at the sizes that they are made for.

At 5,000 topics the clusters are simulated: what counts there is our own work and the number of requests. Groups, and
configs and ACLs of 500 topics, are measured with real brokers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AdminClient,
    NewTopic,
)
from rich.console import Console
from rich.table import Table

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin
from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, PerTopic, TopicConfigs
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.acls.flow import apply_flow_acls, gather_acl_facts
from mirror_lib.sync.acls.plan import plan_acls
from mirror_lib.sync.configs.flow import apply_flow_configs, gather_config_facts
from mirror_lib.sync.configs.plan import plan_configs
from mirror_lib.sync.groups.flow import apply_flow_groups
from mirror_lib.sync.topics.flow import apply_flow_topics
from mirror_lib.topology.acls import AclBinding, AclPattern, AclPermission, AclResource
from mirror_lib.topology.names import TopicPartition

GOAL_SECONDS = 30.0
_GROUPS, _PARTITIONS = 2_000, 50
_SIMULATED_TOPICS, _REAL_TOPICS = 5_000, 500
#: As many as a Kafka 4.3 topic has, and as many ACLs as a topic with two readers and two writers.
_CONFIGS, _ACLS = 34, 4
_TOPICS_AT_ONCE = 500
_RECORDS = 2_000
_WAIT_SECONDS = 120.0

_TEMPLATE = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
A->B.topics = {topics}
A->B.groups = bench-.*
sync.group.offsets.enabled = true
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
B.offset.storage.replication.factor = 1
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One operation at one size."""

    what: str
    size: str
    seconds: float
    #: Of this process: what one core has to do for it.
    cpu_seconds: float
    #: Requests to both clusters, if they are counted.
    requests: int | None = None

    @property
    def reached(self) -> bool:
        """True if it took less than the goal."""
        return max(self.seconds, self.cpu_seconds) < GOAL_SECONDS


class SimulatedAdmin:
    """A cluster with many topics that responds at once, in as many requests as `ClusterAdmin` needs."""

    def __init__(self, cluster: str, topics: int, *, prefix: str = "", value: str = "1000") -> None:
        self.cluster = cluster
        self.requests = 0
        self._value = value
        self._topics = [f"{prefix}topic-{number:05}" for number in range(topics)]

    def list_topics(self) -> list[str]:
        """Return all topics."""
        self.requests += 1
        return list(self._topics)

    def topic_configs(self, names: Iterable[str]) -> PerTopic[TopicConfigs]:
        """Return as many configs as a topic has, one of them set on the topic."""
        wanted = list(names)
        self.requests += -(-len(wanted) // _TOPICS_AT_ONCE)
        return PerTopic({name: TopicConfigs(name, self._entries()) for name in wanted}, {})

    def acls(self, _: Iterable[AclResource]) -> frozenset[AclBinding]:
        """Return some ACLs for each topic."""
        self.requests += 1
        return frozenset(
            AclBinding(
                AclResource.TOPIC, name, AclPattern.LITERAL, f"User:u{number}", "*", operation, AclPermission.ALLOW
            )
            for name in self._topics
            for number, operation in zip(range(_ACLS), ("READ", "DESCRIBE", "WRITE", "ALL"), strict=False)
        )

    def _entries(self) -> dict[str, ConfigEntry]:
        names = [f"config.{number}" for number in range(_CONFIGS - 1)]
        entries = {name: ConfigEntry(name, "1", ConfigOrigin.DEFAULT) for name in names}
        entries["retention.ms"] = ConfigEntry("retention.ms", self._value, ConfigOrigin.TOPIC)
        return entries


def simulated(topics: int, folder: Path) -> Iterator[Measured]:
    """Yield plans for topics of which each has a config and ACLs to copy."""
    flow = _flow(folder, "localhost:1", "localhost:1", topics=".*")
    topology = flow_topology(flow)

    def admins() -> tuple[SimulatedAdmin, SimulatedAdmin]:
        return SimulatedAdmin("A", topics), SimulatedAdmin("B", topics, prefix="A.", value="2000")

    source, target = admins()
    plan, seconds, cpu = _timed(
        lambda: plan_configs(
            flow, gather_config_facts(topology, cast(ClusterAdmin, source), cast(ClusterAdmin, target))
        )
    )
    _check(len(plan.changes), topics)
    yield Measured("plan configs", f"{topics:,} topics, simulated", seconds, cpu, source.requests + target.requests)
    source, target = admins()
    with _ledger() as ledger:
        acls, seconds, cpu = _timed(
            lambda: plan_acls(
                flow, topology, gather_acl_facts(flow, ledger, cast(ClusterAdmin, source), cast(ClusterAdmin, target))
            )
        )
    # Of four, WRITE is dropped; the simulated target has the same on its own topics.
    _check(len(acls.create) + acls.unchanged, topics * (_ACLS - 1))
    yield Measured(
        "plan ACLs",
        f"{topics * _ACLS:,} ACLs on {topics:,} topics, simulated",
        seconds,
        cpu,
        source.requests + target.requests,
    )


def real_topics(topics: int, folder: Path, source: KafkaCluster, target: KafkaCluster) -> Iterator[Measured]:
    """Plan and apply configs and ACLs of topics on real brokers."""
    names = [f"many-{number:05}" for number in range(topics)]
    _create(source, names, {"max.message.bytes": "77777"})
    _create(target, [f"A.{name}" for name in names], {"max.message.bytes": "55555"})
    flow = _flow(folder, source.bootstrap_servers, target.bootstrap_servers, topics="many-.*")
    topology = flow_topology(flow)
    with ClusterAdmin(Connection.from_settings(flow.clients.source_admin)) as admin:
        outcome = admin.create_acls(
            AclBinding(AclResource.TOPIC, name, AclPattern.LITERAL, f"User:u{n}", "*", "READ", AclPermission.ALLOW)
            for name in names
            for n in range(_ACLS)
        )
        _check([error for error in outcome.values() if error is not None], [])
        # Changes accepted by the controller reach brokers a moment later.
        deadline = time.monotonic() + _WAIT_SECONDS
        while len(admin.acls([AclResource.TOPIC])) < len(outcome) and time.monotonic() < deadline:
            time.sleep(0.2)
    configs, seconds, cpu = _timed(lambda: apply_flow_configs(flow, topology))
    _check((len(configs.plan.changes), configs.errors), (topics, ()))
    yield Measured("plan and apply configs", f"{topics:,} topics, real brokers", seconds, cpu)
    with _ledger() as ledger:
        acls, seconds, cpu = _timed(lambda: apply_flow_acls(flow, topology, ledger, by="bench"))
    _check((len(acls.plan.create), acls.failed), (topics * _ACLS, ()))
    yield Measured("plan and apply ACLs", f"{topics * _ACLS:,} ACLs on {topics:,} topics, real brokers", seconds, cpu)


def real_groups(groups: int, folder: Path, source: KafkaCluster, target: KafkaCluster) -> Iterator[Measured]:
    """Translate and checkpoint groups of 50 partitions each, and commit them on the target in a second pass."""
    _create(source, ["orders"], {}, partitions=_PARTITIONS)
    producer = Producer({"bootstrap.servers": source.bootstrap_servers, "linger.ms": 50})
    for number in range(_RECORDS):
        producer.produce("orders", value=b"x", partition=number % _PARTITIONS)
    _check(producer.flush(_WAIT_SECONDS), 0)
    flow = _flow(folder, source.bootstrap_servers, target.bootstrap_servers, topics="orders")
    topology = flow_topology(flow)
    apply_flow_topics(flow, topology)
    with _ledger() as ledger:
        report = replicate(
            flow,
            ledger=ledger,
            make_runner=lambda: lambda job: [each for n in range(len(job.bins)) for each in copy_bin(job, n)],
            options=RunOptions(),
        )
        _check(report.errors, ())
    stand = CommittedOffset(_RECORDS // _PARTITIONS)
    wanted = {
        f"bench-{number:05}": {TopicPartition("orders", n): stand for n in range(_PARTITIONS)}
        for number in range(groups)
    }
    with GroupAdmin(Connection.from_settings(flow.clients.source_admin), _WAIT_SECONDS) as admin:
        outcome = admin.commit(wanted)
        _check([error for each in outcome.values() for error in each.values() if error is not None], [])
    size = f"{groups:,} groups x {_PARTITIONS} partitions, real brokers"
    for what, commit in (("translate and checkpoint groups", False), ("commit group offsets", True)):
        done, seconds, cpu = _timed(lambda commit=commit: apply_flow_groups(flow, topology, commit=commit))  # type: ignore[misc]
        summary = done.plan.summary()
        counted = summary["commits" if commit else "checkpoints"]
        _check((counted, done.plan.problems), (groups * _PARTITIONS, ()))
        yield Measured(what, size, seconds, cpu)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure everything and print a table.

    Returns:
        The exit code: 0 if everything could be measured. Missed goals do not fail it: they depend on the machine.
    """
    parser = argparse.ArgumentParser(prog="bench control-plane", description=__doc__)
    parser.add_argument(
        "--groups", type=int, default=_GROUPS, metavar="N", help=f"Number of groups (default {_GROUPS})."
    )
    parser.add_argument(
        "--topics",
        type=int,
        default=_REAL_TOPICS,
        metavar="N",
        help=f"Topics on real brokers (default {_REAL_TOPICS}).",
    )
    parser.add_argument(
        "--simulated-topics",
        type=int,
        default=_SIMULATED_TOPICS,
        metavar="N",
        help=f"Simulated topics (default {_SIMULATED_TOPICS}).",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    progress, results = Console(stderr=True), []
    with tempfile.TemporaryDirectory(prefix="mirror-control-plane-") as name:
        folder = Path(name)
        for measured in _everything(arguments, folder):
            progress.print(f"{measured.what}: {measured.seconds:.1f} s", highlight=False)
            results.append(measured)
    Console(width=None if sys.stdout.isatty() else 130).print(_table(results))
    if arguments.json is not None:
        text = json.dumps([asdict(measured) for measured in results], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0


def _everything(arguments: argparse.Namespace, folder: Path) -> Iterator[Measured]:
    yield from simulated(arguments.simulated_topics, _sub(folder, "simulated"))
    source, target = (KafkaCluster(side, directory=folder / side, overrides=WITH_ACLS) for side in ("source", "target"))
    with source, target:
        yield from real_topics(arguments.topics, _sub(folder, "topics"), source, target)
        yield from real_groups(arguments.groups, _sub(folder, "groups"), source, target)


def _table(results: Sequence[Measured]) -> Table:
    table = Table(title=f"The control plane at size (goal: each under {GOAL_SECONDS:.0f} s)", title_justify="left")
    for column in ("what", "size"):
        table.add_column(column)
    for column in ("seconds", "CPU seconds", "requests", "goal"):
        table.add_column(column, justify="right")
    for each in results:
        table.add_row(
            each.what,
            each.size,
            f"{each.seconds:.1f}",
            f"{each.cpu_seconds:.1f}",
            "" if each.requests is None else str(each.requests),
            "reached" if each.reached else "NOT reached",
        )
    return table


def _timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - wall, time.process_time() - cpu


def _sub(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _flow(folder: Path, source: str, target: str, *, topics: str) -> FlowConfig:
    path = folder / "mirror.properties"
    path.write_text(_TEMPLATE.format(source=source, target=target, topics=topics, folder=folder), encoding="utf-8")
    return load(path).flow("A->B")


@contextmanager
def _ledger() -> Iterator[Ledger]:
    with (
        tempfile.TemporaryDirectory(prefix="mirror-ledger-") as folder,
        Ledger.open(f"sqlite:///{folder}/ledger.sqlite3") as ledger,
    ):
        ledger.migrate()
        yield ledger


def _create(cluster: KafkaCluster, names: Sequence[str], configs: dict[str, str], *, partitions: int = 1) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 3})
    new = [NewTopic(name, partitions, 1, config=configs) for name in names]
    for future in client.create_topics(new, operation_timeout=_WAIT_SECONDS, request_timeout=_WAIT_SECONDS).values():
        future.result(_WAIT_SECONDS)


def _check(found: object, wanted: object) -> None:
    """Raise if the measured work was not done: the measurement would be meaningless."""
    if found != wanted:
        raise RuntimeError(f"{str(found)[:500]} instead of {str(wanted)[:500]}")


if __name__ == "__main__":
    sys.exit(main())
