"""Three clusters of their own: a heartbeats topic is taken by every flow, also by those of other tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.dev.broker import KafkaCluster
from tests.support.clusters import FAST_HOUSEKEEPING, Chain, start_together
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
