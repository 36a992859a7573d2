"""The location of the ledger: the configured URL, or a SQLite file in the state folder."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from mirror_lib.config.local_state import state_dir
from mirror_lib.config.model import MirrorConfig
from mirror_lib.ledger.store import Ledger

FILE_NAME = "ledger.sqlite3"


def open_ledger(config: MirrorConfig) -> Ledger:
    """The configured ledger, with its tables migrated to this version.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    ledger = Ledger.open(ledger_url(config))
    try:
        ledger.migrate()
    except BaseException:
        ledger.close()
        raise
    return ledger


def existing_ledger(config: MirrorConfig) -> Ledger | None:
    """As `open_ledger`, but None if there is no SQLite file yet: a command that only reads must not create one.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    try:
        url = make_url(ledger_url(config))
    except (ArgumentError, ValueError):
        return open_ledger(config)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
        return None
    return open_ledger(config)


def ledger_url(config: MirrorConfig) -> str:
    """The ledger's URL. A relative SQLite path counts from the folder of the configuration file: Airflow, Spark and
    operators use the same file from different folders."""
    if config.ledger_url is None:
        return default_ledger_url()
    try:
        url = make_url(config.ledger_url)
    except (ArgumentError, ValueError):
        # `Ledger.open` reports what is wrong without showing the text.
        return config.ledger_url
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return config.ledger_url
    path = Path(config.path).absolute().parent / url.database
    return url.set(database=str(path)).render_as_string(hide_password=False)


def default_ledger_url() -> str:
    """`ledger.sqlite3` in the state folder."""
    return f"sqlite:///{state_dir() / FILE_NAME}"
