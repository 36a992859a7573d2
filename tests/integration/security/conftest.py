"""A broker that takes passwords, client certificates, tokens and tickets, with what hands those out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.security.kdc import Realm
from tests.support.security.kerberos_client import kerberos_site
from tests.support.security.secure_cluster import SERVICE, SERVICE_SECRET, SecureCluster, secure_cluster
from tests.support.security.token_endpoint import TokenEndpoint


@pytest.fixture(scope="session")
def realm(brokers_folder: Path) -> Iterator[Realm]:
    """A realm of Kerberos."""
    with Realm("MIRROR.TEST", brokers_folder / "realm") as running:
        yield running


@pytest.fixture(scope="session")
def tokens() -> Iterator[TokenEndpoint]:
    """An identity provider."""
    with TokenEndpoint({SERVICE: SERVICE_SECRET}) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(brokers_folder: Path, kafka_jars: Path, tokens: TokenEndpoint, realm: Realm) -> Iterator[SecureCluster]:
    """The broker. Sessions end soon, so that clients have to log in again in the middle (KIP-368)."""
    overrides = {"connections.max.reauth.ms": "3000"}
    with secure_cluster(
        brokers_folder / "guarded", kafka_jars, tokens=tokens, realm=realm, overrides=overrides
    ) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kerberos_client() -> Path:
    """A folder for PYTHONPATH with clients that speak Kerberos."""
    return kerberos_site(print)
