"""Clusters for transforms in MirrorMaker 2: not the shared ones, which its internal topics would clutter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.dev.broker import KafkaCluster
from tests.support.clusters import KafkaPair, start_together
from tests.support.names import unique_name


@pytest.fixture(scope="module")
def transform_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaPair]:
    """Two single-broker clusters for tests with MirrorMaker 2 and transforms."""
    source, target = (
        KafkaCluster(f"transform-{name}", directory=brokers_folder / unique_name(f"transform-{name}"), jars=kafka_jars)
        for name in ("source", "target")
    )
    with start_together(source, target):
        yield KafkaPair(source, target)
