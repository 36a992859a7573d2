"""Ledgers with their tables, without making the tables each time."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from sqlalchemy import make_url

from mirror_lib.ledger.store import Ledger


def ready_ledger(url: str) -> Ledger:
    """Open a ledger that has its tables; a SQLite file that is not there yet is made, without rows."""
    name = make_url(url).database
    if url.startswith("sqlite:") and name and not Path(name).exists():
        # A copy takes a hundredth of the time of the migrations, which hundreds of tests would spend.
        Path(name).write_bytes(_empty())
    ledger = Ledger.open(url)
    ledger.migrate()
    return ledger


@cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.sqlite3"
        with Ledger.open(f"sqlite:///{made}") as ledger:
            ledger.migrate()
        return copied(made, Path(folder) / "copy.sqlite3").read_bytes()


def copied(ledger: Path, copy: Path) -> Path:
    """Copy a SQLite ledger, whatever of it is still in its log, to a new file; returns that."""
    with closing(sqlite3.connect(ledger)) as source:
        source.execute("VACUUM INTO ?", (str(copy),))
    return copy
