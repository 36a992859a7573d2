"""Where the ledger is: what the configuration names, or a SQLite file in the state folder."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from mirror_lib.config import MirrorConfig, state_dir
from mirror_lib.ledger.store import Ledger

FILE_NAME = "ledger.sqlite3"


def open_ledger(config: MirrorConfig) -> Ledger:
    """The configuration's ledger, with its tables as this version wants them.

    Raises:
        LedgerError: it cannot be used.
    """
    ledger = Ledger.open(ledger_url(config))
    try:
        ledger.migrate()
    except BaseException:
        ledger.close()
        raise
    return ledger


def existing_ledger(config: MirrorConfig) -> Ledger | None:
    """As `open_ledger`, None where there is no SQLite file yet: a look at what is there should not make one.

    Raises:
        LedgerError: it cannot be used.
    """
    try:
        url = make_url(ledger_url(config))
    except (ArgumentError, ValueError):
        return open_ledger(config)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
        return None
    return open_ledger(config)


def ledger_url(config: MirrorConfig) -> str:
    """The ledger's URL. A relative SQLite path counts from the configuration file: Airflow, Spark and people run the
    same file from different folders."""
    if config.ledger_url is None:
        return default_ledger_url()
    try:
        url = make_url(config.ledger_url)
    except (ArgumentError, ValueError):
        # `Ledger.open` says what is wrong, without showing the text.
        return config.ledger_url
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return config.ledger_url
    path = Path(config.path).absolute().parent / url.database
    return url.set(database=str(path)).render_as_string(hide_password=False)


def default_ledger_url() -> str:
    """`ledger.sqlite3` in the state folder."""
    return f"sqlite:///{state_dir() / FILE_NAME}"
