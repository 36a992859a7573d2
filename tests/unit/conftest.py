"""Fixtures for all unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ledger.postgres import postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server for all tests; its absence is a failure."""
    with postgres_server() as url:
        yield url
