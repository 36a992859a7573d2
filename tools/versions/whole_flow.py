"""The whole flow between one pair of clusters, part by part, each checked by an independent client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from mirror_lib.cluster.broker_limits import version_limits
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.acls.flow import apply_flow_acls
from mirror_lib.sync.configs.flow import apply_flow_configs
from mirror_lib.sync.groups.flow import apply_flow_groups
from mirror_lib.sync.heartbeats.flow import check_flow_heartbeats, emit_heartbeats
from mirror_lib.sync.heartbeats.rules import HeartbeatState, emitting_flows
from mirror_lib.sync.topics.flow import apply_flow_topics
from tests.support.flows import copy_here
from tools.versions import workload
from tools.versions.clusters import Side
from tools.versions.results import STEPS, StepResult

_PARTITIONS = 2
_BATCH = 60
#: A config that Kafka 4.0 removed (KIP-724), with a value that 2.8 and 3.9 accept.
_ENDED_CONFIG = ("message.format.version", "2.4")
#: The format before Kafka 0.11: no headers, no transactions. Brokers since 3.0 no longer write it.
_OLD_FORMAT = "0.10.2"
_READER = "User:alice"

_TEMPLATE = """\
clusters = {source}, {target}
{source}.bootstrap.servers = {source_servers}
{target}.bootstrap.servers = {target_servers}
{source}->{target}.enabled = true
{source}->{target}.topics = orders-{target}, old-{target}
{source}->{target}.groups = readers-{source}-{target}
sync.group.offsets.enabled = true
{source}.consumer.isolation.level = read_committed
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
{target}.offset.storage.replication.factor = 1
{target}.offset.storage.partitions = 5
mirror.retry.max.seconds = 30
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""


class WholeFlow:
    """One flow between two running clusters. Use as a context manager."""

    def __init__(self, source: Side, target: Side, folder: Path) -> None:
        """Write only the properties file.

        Args:
            folder: an empty one, for the file and the ledger.
        """
        self._source, self._target = source, target
        path = folder / "mirror.properties"
        path.write_text(
            _TEMPLATE.format(
                source=source.alias,
                target=target.alias,
                source_servers=source.servers,
                target_servers=target.servers,
                folder=folder,
            ),
            encoding="utf-8",
        )
        self._config = load(path)
        self._flow = self._config.flow(f"{source.alias}->{target.alias}")
        self._topology = flow_topology(self._flow)
        self._orders, self._old = f"orders-{target.alias}", f"old-{target.alias}"
        self._group = f"readers-{source.alias}-{target.alias}"
        self._degraded: list[str] = []

    def __enter__(self) -> Self:
        self._ledger = Ledger.open(self._config.ledger_url or "")
        self._ledger.migrate()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ledger.close()

    def limits(self) -> tuple[str, ...]:
        """Return the limits because of the clusters' versions, without their names."""
        source = version_limits(Connection.from_settings(self._flow.clients.source_admin), source=True)
        target = version_limits(Connection.from_settings(self._flow.clients.target_admin), source=False)
        return (
            *(f"A source older than Kafka {limit.since}: {limit.what}." for limit in source),
            *(f"A target older than Kafka {limit.since}: {limit.what}." for limit in target),
        )

    def steps(self) -> Iterator[StepResult]:
        """Test the parts in the order of `STEPS`. A failed one does not prevent the others."""
        parts: dict[str, Callable[[], None]] = {
            "topics": self._topics,
            "copy": self._copy,
            "old format": self._old_format,
            "configs": self._configs,
            "ACLs": self._acls,
            "groups": self._groups,
            "second run": self._second_run,
            "heartbeats": self._heartbeats,
        }
        for step in STEPS:
            self._degraded = []
            failure = None
            try:
                parts[step]()
            except (MirrorError, KafkaException, AssertionError) as error:
                failure = str(error) or type(error).__name__
            yield StepResult(step, failure, tuple(self._degraded))

    # ------------------------------------------------------------ the parts

    def _topics(self) -> None:
        servers = self._source.servers
        configs = {"retention.ms": "-1", "cleanup.policy": "delete"}
        ended = workload.config(servers, self._any_topic(), _ENDED_CONFIG[0]) is not None
        if ended:
            configs |= dict((_ENDED_CONFIG,))
        workload.create_topic(servers, self._orders, partitions=_PARTITIONS, configs=configs)
        old = {"retention.ms": "-1"} | ({_ENDED_CONFIG[0]: _OLD_FORMAT} if ended else {})
        workload.create_topic(servers, self._old, partitions=1, configs=old)
        # Before the copy, which carries them.
        emitted = emit_heartbeats(emitting_flows(self._config, self._flow.flow))
        _expect([str(each.error) for each in emitted if each.error], [], "heartbeats that could not be written")

        done = apply_flow_topics(self._flow, self._topology)

        _expect([str(failed.error) for failed in done.failures], [], "rejected topics")
        for step in done.plan.create:
            if step.unsupported:
                self._degraded.append(f"The target does not have {', '.join(step.unsupported)}: not set on new topics.")
        _expect(workload.config(self._target.servers, self._remote(self._orders), "retention.ms"), "-1", "retention.ms")

    def _copy(self) -> None:
        servers = self._source.servers
        for codec in workload.CODECS:
            workload.produce(servers, self._orders, _BATCH, partitions=_PARTITIONS, codec=codec)
        workload.produce_transaction(servers, self._orders, [b"aborted"] * 5, commit=False)
        workload.produce_transaction(servers, self._orders, [b"committed"] * 5, commit=True)
        workload.produce(servers, self._old, _BATCH, partitions=1, codec="gzip", headers=False)
        workload.produce(servers, self._old, _BATCH, partitions=1, codec="none", headers=False)

        # At least a heartbeat is copied.
        assert self._run() > 0, "nothing was copied"

        self._compare(self._orders, len(workload.CODECS) * _BATCH + 5)

    def _old_format(self) -> None:
        self._compare(self._old, 2 * _BATCH)

    def _configs(self) -> None:
        # A hundred years: the records are some years old, and must not be deleted.
        workload.set_config(self._source.servers, self._orders, "retention.ms", "3153600000000")
        workload.set_config(self._source.servers, self._orders, "max.message.bytes", "1500000")

        done = apply_flow_configs(self._flow, self._topology)

        _expect([str(error) for error in done.errors], [], "rejected topic configs")
        remote = self._remote(self._orders)
        for name, value in {"retention.ms": "3153600000000", "max.message.bytes": "1500000"}.items():
            self._wait_for_config(remote, name, value)
        unknown = sorted({row.name for row in done.plan.drift if row.rule.name == "UNKNOWN"})
        if unknown:
            self._degraded.append(f"The target does not have {', '.join(unknown)}: not set, and reported as drift.")
        again = apply_flow_configs(self._flow, self._topology)
        _expect([str(change) for change in again.plan.changes], [], "topic configs to change twice")

    def _acls(self) -> None:
        for operation in ("READ", "WRITE"):
            workload.grant(self._source.servers, self._orders, _READER, operation)

        done = apply_flow_acls(self._flow, self._topology, self._ledger, by="versions")

        _expect(done.plan.notice, None, "notice")
        _expect([str(error) for _, error in done.failed], [], "rejected ACLs")
        remote = self._remote(self._orders)
        # MM2's rewrite: only the replicator writes to remote topics.
        workload.eventually(
            lambda: workload.grants(self._target.servers, remote) == {(_READER, "READ")}, "the grant to read is missing"
        )

    def _groups(self) -> None:
        self._group_follows(self._end(1))

    def _second_run(self) -> None:
        before = len(workload.consume(self._target.servers, self._remote(self._orders)))
        workload.produce(self._source.servers, self._orders, _BATCH, partitions=_PARTITIONS, codec="zstd")

        self._run()

        self._compare(self._orders, before + _BATCH)
        self._group_follows(self._end(1))

    def _heartbeats(self) -> None:
        emit_heartbeats(emitting_flows(self._config, self._flow.flow))
        self._run()
        source = check_flow_heartbeats(self._flow, ledger=self._ledger).source
        _expect((source.state, source.hops), (HeartbeatState.FRESH, 1), f"heartbeats of the source ({source.problem})")

    # ------------------------------------------------------------ helpers

    def _run(self) -> int:
        """Copy new records; return their number."""
        report = replicate(self._flow, ledger=self._ledger, make_runner=lambda: copy_here, options=RunOptions())
        _expect([str(error) for error in report.errors], [], "partitions that were not copied")
        return report.records

    def _compare(self, topic: str, count: int) -> None:
        wanted = workload.consume(self._source.servers, topic)
        found = workload.consume(self._target.servers, self._remote(topic))
        _expect(len(wanted), count, f"records of {topic} on the source")
        assert found == wanted, f"{self._remote(topic)} holds {len(found)} records and differs from {topic}"

    def _group_follows(self, offset: int) -> None:
        """Check that a group that has read partition 1 to its end continues at the copy's end."""
        workload.commit(self._source.servers, self._group, self._orders, 1, offset)

        done = apply_flow_groups(self._flow, self._topology)

        _expect(list(done.plan.problems), [], "rejected groups")
        end = workload.end_offset(self._target.servers, self._remote(self._orders), 1)
        found = workload.committed(self._target.servers, self._group)
        _expect(found, {(self._remote(self._orders), 1): end}, "committed offsets of the group")

    def _wait_for_config(self, topic: str, name: str, value: str) -> None:
        servers = self._target.servers
        workload.eventually(lambda: workload.config(servers, topic, name) == value, f"{name} did not arrive")

    def _end(self, partition: int) -> int:
        return workload.end_offset(self._source.servers, self._orders, partition)

    def _remote(self, topic: str) -> str:
        return f"{self._source.alias}.{topic}"

    def _any_topic(self) -> str:
        """Return a topic of the source, which shows the configs of its brokers."""
        servers, topic = self._source.servers, "versions-probe"
        if topic not in workload.admin(servers).list_topics(timeout=30).topics:
            workload.create_topic(servers, topic, partitions=1, configs={})
        return topic


def _expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} instead of {wanted!r}")
