"""A ledger in each of the databases it is made for; the tests in this folder hold for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from mirror_lib.ledger.store import Ledger
from tests.support.postgres import postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server for all tests; its absence is a failure."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_url: str) -> str:
    """The same server without tables."""
    # Not a database per test: each is a thousand files.
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.sqlite3"
    url: str = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger with its tables."""
    with Ledger.open(database_url) as ledger:
        ledger.migrate()
        yield ledger
