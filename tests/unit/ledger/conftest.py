"""A ledger in each of the databases it is made for; the tests in this folder hold for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from mirror_lib.ledger.models import METADATA
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


@pytest.fixture(scope="session")
def _kept_postgres_url(postgres_url: str) -> str:
    """A second database of the server, with the ledger's tables."""
    server = make_url(postgres_url).set(drivername="postgresql+psycopg")
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE kept"))
    engine.dispose()
    url = make_url(postgres_url).set(database="kept").render_as_string(hide_password=False)
    with Ledger.open(url) as ledger:
        ledger.migrate()
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger with its tables and without a row."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/ledger.sqlite3"
        with Ledger.open(url) as ledger:
            ledger.migrate()
        return url
    kept: str = request.getfixturevalue("_kept_postgres_url")
    # Making the tables again for each test would take ten times as long.
    engine = create_engine(make_url(kept).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {', '.join(METADATA.tables)} RESTART IDENTITY"))
    engine.dispose()
    return kept


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger in each of the databases."""
    with Ledger.open(ledger_url) as ledger:
        yield ledger
