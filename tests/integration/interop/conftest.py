"""Clusters for MirrorMaker 2 and us: not the shared ones, for heartbeats would reach the flows of all other tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import KafkaPair, start_together
from tests.support.names import unique_name


@pytest.fixture(scope="module")
def interop_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaPair]:
    """Two single-broker clusters for tests with MirrorMaker 2; use `shared_flow`, which takes new aliases."""
    source, target = (
        KafkaCluster(f"interop-{name}", directory=brokers_folder / unique_name(f"interop-{name}"), jars=kafka_jars)
        for name in ("source", "target")
    )
    with start_together(source, target):
        yield KafkaPair(source, target)
