"""Two clusters on which a user may do only what he is granted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters import start_together
from tests.support.restricted import Granter, RestrictedPair, restricted_cluster


@pytest.fixture(scope="session")
def restricted_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[RestrictedPair]:
    """Two single-broker clusters with authorizers."""
    source, target = (restricted_cluster(name, brokers_folder, kafka_jars) for name in ("restricted-a", "restricted-b"))
    with start_together(source, target):
        yield RestrictedPair(Granter(source), Granter(target))
