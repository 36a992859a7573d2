"""The stored formats of every version; each test reads those of one version with today's code."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text

from mirror_lib.config.model import MirrorConfig
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.store import Ledger
from tests.stored_formats.folder import FACTS, POSTGRES, SQLITE, read_json, version_folders
from tests.stored_formats.snapshots import restore_postgres, row_counts

Fact = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """The ledger of a version, opened and brought up to date as the product does it.

    Attributes:
        rows_before: rows of every table before that.
        by_kind: what the ledger has to say, as its writer put it in.
    """

    ledger: Ledger
    rows_before: dict[str, int]
    by_kind: dict[str, list[Fact]]

    def facts(self, kind: str) -> list[Fact]:
        """Facts of a kind; every version has some of each."""
        return self.by_kind[kind]


@pytest.fixture(scope="session", params=version_folders(), ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    """The folder of a version."""
    return request.param


BOTH = (SQLITE, pytest.param(POSTGRES, marks=pytest.mark.integration))


@pytest.fixture(scope="session", params=BOTH)
def stored(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """The ledger of a version; tests only read it."""
    yield from _opened(request, folder, tmp_path_factory.mktemp("stored"))


@pytest.fixture(params=BOTH)
def continued(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Stored]:
    """The ledger of a version for one test that writes to it."""
    yield from _opened(request, folder, tmp_path)


def _opened(request: pytest.FixtureRequest, folder: Path, work: Path) -> Iterator[Stored]:
    if request.param == SQLITE:
        shutil.copyfile(folder / SQLITE, work / SQLITE)
        url = f"sqlite:///{work / SQLITE}"
    else:
        url = _restored(request.getfixturevalue("postgres_url"), folder)
    with Ledger.open(url) as before:
        rows = row_counts(before)
    config = MirrorConfig(path="mirror.properties", clusters=(), flows=(), ledger_url=url)
    with open_ledger(config) as ledger:
        yield Stored(ledger, rows, read_json(folder / FACTS[request.param]))


def _restored(server: str, folder: Path) -> str:
    """The URL of a new database with what a version has stored."""
    name = f"stored_{uuid.uuid4().hex}"
    engine = create_engine(make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    url = make_url(server).set(database=name).render_as_string(hide_password=False)
    restore_postgres(url, folder / POSTGRES)
    return url
