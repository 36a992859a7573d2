"""A ledger in each of the databases it is made for; the tests in this folder hold for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from mirror_lib.ledger.store import Ledger
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.tables import METADATA


@pytest.fixture
def empty_postgres_url(postgres_url: str) -> str:
    """The same server without tables."""
    # Not a database per test: each is a thousand files.
    _execute(postgres_url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return postgres_url


def _execute(url: str, *statements: str) -> None:
    # Without a transaction, in which PostgreSQL makes no database.
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.sqlite3"
    return request.getfixturevalue("empty_postgres_url")


@pytest.fixture(scope="session")
def _kept_postgres_url(postgres_url: str) -> str:
    """A second database of the server, with the ledger's tables."""
    _execute(postgres_url, "CREATE DATABASE kept")
    url = make_url(postgres_url).set(database="kept").render_as_string(hide_password=False)
    ready_ledger(url).close()
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger with its tables and without a row."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/ledger.sqlite3"
        ready_ledger(url).close()
        return url
    kept: str = request.getfixturevalue("_kept_postgres_url")
    # Making the tables again for each test would take ten times as long.
    _execute(kept, f"TRUNCATE {', '.join(METADATA.tables)} RESTART IDENTITY")
    return kept


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger in each of the databases."""
    with Ledger.open(ledger_url) as ledger:
        yield ledger
