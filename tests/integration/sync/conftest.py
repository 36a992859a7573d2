"""Three clusters of their own: a heartbeats topic is taken by every flow, also by those of other tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.ledger.location import open_ledger
from mirror_lib.sync.loops.flow import check_loops
from tests.support.clusters import FAST_HOUSEKEEPING, Chain, start_together
from tests.support.flows import Flow
from tests.support.kafka import delete_topics
from tests.support.names import unique_name


@pytest.fixture(scope="module")
def _chain_clusters(kafka_jars: Path, brokers_folder: Path) -> Iterator[Chain]:
    clusters = [
        KafkaCluster(name, directory=brokers_folder / unique_name(name), jars=kafka_jars, overrides=FAST_HOUSEKEEPING)
        for name in ("first", "second", "third")
    ]
    with start_together(*clusters):
        yield Chain(*clusters)


@pytest.fixture
def chain(_chain_clusters: Chain) -> Chain:
    """The clusters without topics."""
    for cluster in (_chain_clusters.first, _chain_clusters.second, _chain_clusters.third):
        delete_topics(cluster)
    return _chain_clusters


def network(folder: Path, chain: Chain, *lines: str) -> MirrorConfig:
    """Clusters A, B and C in one file; `lines` are added as they are."""
    text = f"""\
clusters = A, B, C
A.bootstrap.servers = {chain.first.bootstrap_servers}
B.bootstrap.servers = {chain.second.bootstrap_servers}
C.bootstrap.servers = {chain.third.bootstrap_servers}
replication.factor = 1
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.partitions = 5
mirror.retry.max.seconds = 20
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""
    path = folder / "mirror.properties"
    path.write_text(text + "".join(f"{line}\n" for line in lines))
    return load(path)


def run(config: MirrorConfig, *flows: str) -> None:
    """One run of each flow after the other: no loops, topics, copy."""
    with open_ledger(config) as ledger:
        for name in flows:
            flow = config.flow(name)
            check_loops(config, flow, flow_topology(flow))
            assert Flow(flow, ledger, Path(config.path)).run().errors == ()
