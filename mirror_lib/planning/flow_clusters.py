"""The clients of one run of a flow, and what they have read last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import SOURCE_CONNECTOR, ClusterPair
from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.identity.clusters import cluster_pair
from mirror_lib.planning.altered_positions import AlteredPosition
from mirror_lib.planning.markers import WrittenRanges
from mirror_lib.planning.model import ProducerMemory
from mirror_lib.planning.open_transactions import longest_transaction_seconds
from mirror_lib.planning.producer_expiry import producer_memory
from mirror_lib.sync.admins import source_admin, target_admin
from mirror_lib.topology.names import TopicPartition


@dataclass(slots=True)
class FlowClusters:
    """The clients that one run of a flow uses on the driver, and the state that they read last."""

    flow: FlowConfig
    source_admin: ClusterAdmin
    target_admin: ClusterAdmin
    positions: PositionStore
    positions_connection: Connection
    source_data: Connection
    target_data: Connection
    #: What was written to both clusters behind the copies of the flows.
    source_writes: WrittenRanges
    target_writes: WrittenRanges
    positions_at_plan: PositionSnapshot = field(default_factory=PositionSnapshot)
    #: Topics already reported as not visible: once in a run is enough.
    reported_unseen: set[str] = field(default_factory=set)
    #: Topics that the source has, selected or not.
    listed: Collection[str] = ()
    #: Topics that the configuration names and the source does not have.
    missing_topics: tuple[str, ...] = ()
    #: Sentences about the source for the plan.
    notes: tuple[str, ...] = ()
    #: Source topics with lag whose target replaces timestamps.
    replaced_timestamps: Sequence[str] = ()
    #: Positions that an operator has altered in Connect's form.
    altered: Sequence[AlteredPosition] = ()
    #: By cluster, the partitions whose last copied record was found there: checking once in a run is enough.
    known_again: defaultdict[str, set[TopicPartition]] = field(default_factory=lambda: defaultdict(set))
    #: Epoch milliseconds: when these clients last saw a partition copied to its end. A run stores nothing about that.
    idle_at: dict[TopicPartition, int] = field(default_factory=dict)
    #: Number of plans made with these clients: the rounds of a run.
    plans: int = 0
    _sources: dict[TopicPartition, list[TopicPartition]] = field(default_factory=dict)
    _memory: ProducerMemory | None = None
    _longest_transaction: float | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def connect(
        cls, flow: FlowConfig, *, connector: str = SOURCE_CONNECTOR, admin_seconds: float | None = None
    ) -> FlowClusters:
        """Create the admin clients without sending a request.

        Args:
            connector: connector name of the positions: the flow's own, or a backfill's.
            admin_seconds: timeout of each call of the admin clients; default `admin.timeout.ms`.
        """
        clients = flow.clients
        internal = Connection.from_settings(clients.target_internal)
        source_data = Connection.from_settings(clients.data_consumer)
        target_data = Connection.from_settings(clients.data_producer)
        return cls(
            flow=flow,
            source_admin=source_admin(flow, admin_seconds),
            target_admin=target_admin(flow, admin_seconds),
            positions=PositionStore(internal, flow.offset_storage_topic, flow.source_alias, connector=connector),
            positions_connection=internal,
            source_data=source_data,
            target_data=target_data,
            source_writes=WrittenRanges(source_data),
            target_writes=WrittenRanges(target_data),
        )

    @property
    def read_committed(self) -> bool:
        """True if aborted and open transactions of the source are skipped."""
        return self.flow.isolation_level is IsolationLevel.READ_COMMITTED

    def producer_memory(self) -> ProducerMemory:
        """Expiration of producer state on the target's brokers; requested once."""
        if self._memory is None:
            self._memory = producer_memory(self.target_admin)
        return self._memory

    def longest_transaction_seconds(self) -> float:
        """Maximum seconds that a transaction may stay open on the source; requested once."""
        if self._longest_transaction is None:
            self._longest_transaction = longest_transaction_seconds(self.source_admin)
        return self._longest_transaction

    def ids(self) -> ClusterPair | None:
        """The ids of both clusters; None if one of them has none (before Kafka 0.10.1)."""
        return cluster_pair(self.source_admin, self.target_admin)

    def sources_of(self, target: TopicPartition) -> Sequence[TopicPartition]:
        """The source partitions of the last plan with this target partition; several in a merge."""
        return self._sources.get(target, ())

    def note_sources(self, pairs: Iterable[tuple[TopicPartition, TopicPartition]]) -> None:
        """Remember the target partition of each source partition."""
        self._sources.clear()
        for source, target in pairs:
            self._sources.setdefault(target, []).append(source)

    def __enter__(self) -> Self:
        for client in (self.source_admin, self.target_admin, self.positions):
            self._stack.enter_context(client)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
