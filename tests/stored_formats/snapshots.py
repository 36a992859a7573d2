"""Ledgers as files: SQLite's database without its log, PostgreSQL as SQL, and the check that all tables are filled."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import func, inspect, select

from mirror_lib.ledger.database import VERSION_TABLE
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.postgres import find_binaries


def store_sqlite(database: Path, copy: Path) -> None:
    """Write a consistent copy, as one file, of a database that others may be writing to."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))


def store_postgres(url: str, copy: Path) -> None:
    """Write the database as plain SQL, without owners, privileges and the name of this machine's version."""
    dump = _run("pg_dump", url, "--no-owner", "--no-privileges", "--no-comments", "--inserts")
    copy.write_text("\n".join(_without_session(dump)) + "\n", encoding="utf-8")


def restore_postgres(url: str, copy: Path) -> None:
    """Carry out what `store_postgres` wrote, in an empty database."""
    _run("psql", url, "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--file={copy}")


def _without_session(dump: str) -> list[str]:
    """The lines but psql's own commands, which only the newest patch versions know, and comments on the versions."""
    lines = (line.rstrip() for line in dump.splitlines())
    return [line for line in lines if line and not line.startswith(("--", "\\"))]


def _run(program: str, url: str, *arguments: str) -> str:
    parts = urlsplit(url)
    target = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
    done = subprocess.run(
        [str(find_binaries() / program), *arguments, target],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PGPASSWORD": parts.password or "", "PGOPTIONS": "--client-min-messages=warning"},
    )
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def empty_tables(ledger: Ledger) -> list[str]:
    """Tables of the ledger without a row."""
    with ledger.database.read() as connection:
        return [
            table.name
            for table in METADATA.sorted_tables
            if not connection.execute(select(func.count()).select_from(table)).scalar_one()
        ]


def one_sided_columns(ledger: Ledger) -> tuple[list[str], list[str]]:
    """Nullable columns that are never set, and those that are always set."""
    never, always = [], []
    with ledger.database.read() as connection:
        for table in METADATA.sorted_tables:
            rows = connection.execute(select(func.count()).select_from(table)).scalar_one()
            for column in (column for column in table.columns if column.nullable):
                given = connection.execute(select(func.count(column))).scalar_one()
                if not given:
                    never.append(f"{table.name}.{column.name}")
                elif given == rows:
                    always.append(f"{table.name}.{column.name}")
    return never, always


def row_counts(ledger: Ledger) -> dict[str, int]:
    """Rows of every table, also of those that this version does not know any more."""
    with ledger.database.read() as connection:
        names = sorted(set(inspect(connection).get_table_names()) - {VERSION_TABLE})
        return {name: connection.exec_driver_sql(f'SELECT count(*) FROM "{name}"').scalar_one() for name in names}
