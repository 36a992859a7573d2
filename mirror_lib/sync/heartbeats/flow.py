"""Emits the heartbeats of cluster pairs, and checks the heartbeats that a flow copied to its target."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec, TopicSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.kafka_errors import TopicExistsError, UnsupportedRequestError
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.cluster.topics.position_store import HeartbeatWriter, read_last_heartbeats
from mirror_lib.cluster.topics.records import RecordPlace
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology, replication_policy
from mirror_lib.errors import AuthorizationError, MirrorError, TopicMissingError, Where
from mirror_lib.identity.clusters import check_heartbeats_cluster
from mirror_lib.ledger.store import Ledger
from mirror_lib.outside_limits import HEARTBEAT_PAIRS
from mirror_lib.sync.heartbeats.rules import (
    HeartbeatState,
    HeartbeatTail,
    UpstreamHeartbeat,
    check_upstreams,
    default_max_age_seconds,
    heartbeats_topic,
    newest_of,
    topics_to_read,
)
from mirror_lib.sync.hidden_by_acls import hidden_topics
from mirror_lib.sync.topics.waiting import wait_until_visible
from mirror_lib.topology.names import FlowId, TopicPartition

_log = logging.getLogger(__name__)

#: The latest heartbeat must have come with one of the last runs, or its latency is out of date.
_RUNS_LOOKED_AT = 3
_UNUSABLE = frozenset({HeartbeatState.STALE, HeartbeatState.MISSING})


@dataclass(frozen=True, slots=True)
class EmittedHeartbeat:
    """A heartbeat that was written, or its error."""

    pair: FlowId
    #: The pair's target, to which the heartbeat is written.
    cluster: str
    topic: str
    #: Epoch milliseconds, in the heartbeat and in its record.
    timestamp_ms: int
    error: MirrorError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and XCom."""
        return {
            "pair": str(self.pair),
            "cluster": self.cluster,
            "topic": self.topic,
            "timestamp_ms": self.timestamp_ms,
            "error": None if self.error is None else self.error.attributes(),
        }


class HeartbeatEmitter:
    """Writes heartbeats of some pairs, any number of times; a pair that fails does not stop the others."""

    def __init__(
        self, pairs: Sequence[FlowConfig], ledger: Ledger | None = None, *, timeout_seconds: float = 20.0
    ) -> None:
        """Args:
        pairs: heartbeats are written to the target of each (see `heartbeats.rules.emitting_flows`).
        ledger: has the cluster ids of their aliases; None if there is none yet.
        timeout_seconds: maximum wait for one response of a cluster.
        """
        self._pairs = tuple(pairs)
        self._ledger = ledger
        self._timeout = timeout_seconds
        self._writers: dict[FlowId, HeartbeatWriter] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def emit(self) -> tuple[EmittedHeartbeat, ...]:
        """Write one heartbeat per pair with the current time; create missing topics first."""
        return tuple(self._emit(pair) for pair in self._pairs)

    def _emit(self, pair: FlowConfig) -> EmittedHeartbeat:
        spec = heartbeats_topic(pair, replication_policy(pair))
        emitted = EmittedHeartbeat(pair.flow, pair.flow.target, spec.name, _now_ms())
        try:
            writer = self._writers.get(pair.flow) or self._open_writer(pair, spec)
            emitted = replace(emitted, timestamp_ms=_now_ms())
            writer.write([Heartbeat(pair.source_alias, pair.target_alias, emitted.timestamp_ms)])
        except MirrorError as error:
            # The topic may have been deleted: check again next time.
            self._writers.pop(pair.flow, None)
            return replace(emitted, error=error)
        return emitted

    def _open_writer(self, pair: FlowConfig, spec: TopicSpec) -> HeartbeatWriter:
        with ClusterAdmin(Connection.from_settings(pair.clients.target_admin), self._timeout) as admin:
            # Before anything is created or written: the alias may name another cluster now.
            check_heartbeats_cluster(pair.flow, self._ledger, admin.cluster_id())
            _ensure_topic(pair, admin, spec)
        connection = Connection.from_settings(pair.clients.data_producer)
        writer = self._open.enter_context(HeartbeatWriter(connection, spec.name, timeout=self._timeout))
        self._writers[pair.flow] = writer
        return writer


def emit_heartbeats(pairs: Sequence[FlowConfig], ledger: Ledger | None = None) -> tuple[EmittedHeartbeat, ...]:
    """Write one heartbeat per pair; a failure is in its `error`.

    Raises:
        ConfigurationError: a pair's replication policy cannot be loaded.
    """
    with HeartbeatEmitter(pairs, ledger) as emitter:
        return emitter.emit()


@dataclass(frozen=True, slots=True)
class HeartbeatCheck:
    """The state of the upstream clusters according to the heartbeats on a flow's target."""

    flow: FlowId
    max_age_seconds: float
    #: Nearest first; always includes the flow's source.
    upstreams: tuple[UpstreamHeartbeat, ...]
    #: Topics with records that are not heartbeats.
    unreadable: tuple[str, ...] = ()
    #: Topics with heartbeats of more pairs than are kept.
    overfull: tuple[str, ...] = ()
    #: The source's name in heartbeats, if it differs from the flow's alias.
    source_alias: str | None = None

    @property
    def source(self) -> UpstreamHeartbeat:
        """The flow's own source."""
        alias = self.flow.source if self.source_alias is None else self.source_alias
        return next(upstream for upstream in self.upstreams if upstream.cluster == alias)

    @property
    def source_is_cut_off(self) -> bool:
        """True if heartbeats of the flow's source are missing or stale."""
        return self.source.state in _UNUSABLE

    @property
    def remarks(self) -> tuple[str, ...]:
        """A sentence for each topic with records of other writers."""
        foreign = [f"Topic {topic} contains records that are not heartbeats." for topic in self.unreadable]
        return (
            *foreign,
            *(
                f"Topic {topic} contains heartbeats of more than {HEARTBEAT_PAIRS:,} pairs of clusters: another "
                "program writes to it. The newest heartbeat counts; not all pairs are listed."
                for topic in self.overfull
            ),
        )

    @property
    def exit_code(self) -> int:
        """0 if every upstream cluster is fresh."""
        fresh = all(upstream.state is HeartbeatState.FRESH for upstream in self.upstreams)
        return 0 if fresh else 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and XCom."""
        return {
            "flow": str(self.flow),
            "max_age_seconds": self.max_age_seconds,
            "upstreams": [upstream.to_dict() for upstream in self.upstreams],
            "unreadable": list(self.unreadable),
            "overfull": list(self.overfull),
        }


def check_flow_heartbeats(
    flow: FlowConfig,
    *,
    ledger: Ledger | None = None,
    max_age_seconds: float | None = None,
    written_ms: int | None = None,
) -> HeartbeatCheck:
    """Read the heartbeats that a flow copied to its target, and return the state of every upstream cluster.

    Args:
        ledger: has the arrival time of heartbeats, for their latency.
        max_age_seconds: older heartbeats are stale; by default derived from the flow's schedule.
        written_ms: when a heartbeat was written to the source before the last copy; it must have arrived.

    Raises:
        MirrorError: the target cannot be used.
    """
    topology = flow_topology(flow)
    usual = default_max_age_seconds(flow.periodic_schedule, flow.emit_heartbeats_interval_seconds)
    allowed = usual if max_age_seconds is None else max_age_seconds
    admin_connection = Connection.from_settings(flow.clients.target_admin)
    with ClusterAdmin(admin_connection, flow.admin_timeout_ms / 1000) as admin:
        listed = admin.list_topics()
        topics = topics_to_read(topology, listed)
        expected = filter(topology.replicates, [topology.policy.heartbeats_topic()])
        for refusal in hidden_topics(admin, map(topology.remote_topic, expected), listed).values():
            raise refusal
        ends = _ends(admin, topics)
    tails = []
    for topic in topics:
        tail, place = _read_tail(Connection.from_settings(flow.clients.target_internal), topic, ends.get(topic, {}))
        tails.append(replace(tail, arrived_ms=_arrival_ms(ledger, flow.flow, topic, place)))
    upstreams = check_upstreams(topology, tails, now_ms=_now_ms(), max_age_seconds=allowed, written_ms=written_ms)
    unreadable = tuple(tail.topic for tail in tails if tail.unreadable)
    overfull = tuple(tail.topic for tail in tails if tail.beyond)
    return HeartbeatCheck(flow.flow, allowed, upstreams, unreadable, overfull, flow.source_alias)


def _ensure_topic(pair: FlowConfig, admin: ClusterAdmin, spec: TopicSpec) -> None:
    """As in MM2, assume that a topic exists that cannot be created or seen (`MirrorUtils.createCompactedTopic`)."""
    if not isinstance(admin.describe_topics([spec.name]).errors.get(spec.name), TopicMissingError):
        return
    error = admin.create_topics([spec])[spec.name]
    if error is None:
        for late in wait_until_visible(admin, {spec.name: spec.partitions}).values():
            raise late
    elif isinstance(error, AuthorizationError):
        raise error
    elif not isinstance(error, TopicExistsError | UnsupportedRequestError):
        raise type(error)(
            error.what,
            where=Where(flow=str(pair.flow), cluster=admin.cluster, topic=spec.name),
            action=f"{error.action} The replication factor {spec.replication_factor} is set by "
            "heartbeats.topic.replication.factor.".strip(),
        ) from error


def _ends(admin: ClusterAdmin, topics: Sequence[str]) -> dict[str, dict[int, int]]:
    described = admin.describe_topics(topics)
    wanted = [TopicPartition(name, each.partition) for name, topic in described.items() for each in topic.partitions]
    ends: dict[str, dict[int, int]] = {}
    for place, fact in admin.list_offsets(wanted, OffsetSpec.LATEST).items():
        if fact.error is None:
            ends.setdefault(place.topic, {})[place.partition] = fact.offset
    return ends


def _read_tail(connection: Connection, topic: str, ends: dict[int, int]) -> tuple[HeartbeatTail, RecordPlace | None]:
    """The end of a heartbeats topic, and the place of its latest heartbeat."""
    found = read_last_heartbeats(connection, topic, ends)
    tail = newest_of(topic, (heartbeat for heartbeat, _ in found.heartbeats), unreadable=found.unreadable)
    tail = replace(tail, beyond=found.beyond)
    place = next((place for heartbeat, place in found.heartbeats if heartbeat == tail.newest), None)
    return tail, place


def _arrival_ms(ledger: Ledger | None, flow: FlowId, topic: str, place: RecordPlace | None) -> int | None:
    """When the run that copied a record stored its position, in epoch milliseconds."""
    if ledger is None or place is None:
        return None
    for run in ledger.runs(str(flow), _RUNS_LOOKED_AT):
        for row in ledger.partition_runs(run.id):
            here = row.target_topic == topic and row.partition == place.partition
            if here and row.target_first <= place.offset < row.target_next and row.updated_at is not None:
                return int(row.updated_at.timestamp() * 1000)
    return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
