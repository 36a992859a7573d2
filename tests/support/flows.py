"""A flow between the shared clusters, run as users run it but without Spark: the copy tasks run in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.config.loader import load
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.sync.topics.flow import TopicSync, apply_flow_topics
from mirror_lib.sync.topics.internal import ensure_internal_topics
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.ledger.ledgers import ready_ledger


def copy_here(job: CopyJob) -> list[PartitionResult]:
    """Run all bins of a job in threads of this process, as Spark would in processes of its own."""
    with ThreadPoolExecutor(max_workers=len(job.bins)) as pool:
        return [
            result
            for results in pool.map(lambda number: copy_bin(job, number), range(len(job.bins)))
            for result in results
        ]


@dataclass(frozen=True)
class Flow:
    """One configured flow with its ledger."""

    config: FlowConfig
    ledger: Ledger
    path: Path

    def sync_topics(self) -> TopicSync:
        """Create internal and remote topics."""
        return apply_flow_topics(self.config, flow_topology(self.config))

    def sync_internal_topics(self) -> None:
        """Create the internal topics only."""
        source = ClusterAdmin(Connection.from_settings(self.config.clients.source_admin))
        target = ClusterAdmin(Connection.from_settings(self.config.clients.target_admin))
        with source, target:
            ensure_internal_topics(self.config, source, target)

    def run(
        self, *, runner: Callable[[CopyJob], list[PartitionResult]] = copy_here, sync: bool = True, **options: Any
    ) -> RunReport:
        """One run: topics first, then the copy."""
        if sync:
            self.sync_topics()
        return replicate(self.config, ledger=self.ledger, make_runner=lambda: runner, options=RunOptions(**options))

    def position(self, topic: str, partition: int = 0) -> Position:
        """The stored position of a partition of the source."""
        connection = Connection.from_settings(self.config.clients.target_internal)
        with PositionStore(connection, self.config.offset_storage_topic, self.config.source_alias) as store:
            return store.read_all().positions[TopicPartition(topic, partition)].position

    def with_settings(self, **settings: Any) -> Flow:
        """The same flow with other copy settings."""
        changed = replace(self.config.copy_settings, **settings)
        return replace(self, config=self.config.model_copy(update={"copy_settings": changed}))


def make_flow(
    folder: Path,
    source_servers: str,
    target_servers: str,
    *,
    topics: str,
    settings: Mapping[str, str] | None = None,
) -> Flow:
    """Write a properties file for the flow A->B and load it; `settings` are added as they are."""
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": source_servers,
        "B.bootstrap.servers": target_servers,
        "A->B.enabled": "true",
        "A->B.topics": topics,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "B.offset.storage.replication.factor": "1",
        "B.offset.storage.partitions": "5",
        # Every flow between shared clusters would take them along.
        "emit.heartbeats.enabled": "false",
        "mirror.retry.max.seconds": "20",
        "mirror.ledger.url": f"sqlite:///{folder}/ledger.sqlite3",
        **(settings or {}),
    }
    return written_flow(folder, lines, "A->B")[1]


def written_flow(folder: Path, lines: Mapping[str, str], name: str) -> tuple[MirrorConfig, Flow]:
    """Write a properties file; return its settings and one of its flows, with the ledger that it names."""
    path = folder / "mirror.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    config = load(path)
    return config, Flow(config.flow(name), ready_ledger(config.ledger_url or ""), path)


def pair_flow(folder: Path, pair: KafkaPair, *, topics: str, settings: Mapping[str, str] | None = None) -> Flow:
    """The flow from the shared source to the shared target."""
    servers = pair.source.bootstrap_servers, pair.target.bootstrap_servers
    return make_flow(folder, *servers, topics=topics, settings=settings)
