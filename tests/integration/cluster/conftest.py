"""The secured broker, started once for each file that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.names import unique_name
from tests.support.security.secure_cluster import SecureCluster, secure_cluster


@pytest.fixture(scope="module")
def secured(brokers_folder: Path, kafka_jars: Path) -> Iterator[SecureCluster]:
    """A broker with TLS, passwords and client certificates."""
    with secure_cluster(brokers_folder / unique_name("secured"), kafka_jars) as cluster:
        yield cluster
