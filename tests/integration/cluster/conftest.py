"""The secured broker, started once for the tests of this folder that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.secure_cluster import SecureCluster, secure_cluster


@pytest.fixture(scope="session")
def secured(brokers_folder: Path, kafka_jars: Path) -> Iterator[SecureCluster]:
    """A broker with TLS, passwords and client certificates."""
    with secure_cluster(brokers_folder / "secured", kafka_jars) as cluster:
        yield cluster
