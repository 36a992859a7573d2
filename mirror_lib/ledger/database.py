"""Connections to the ledger's database, SQLite or PostgreSQL, with one interface for both."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.interruptions import interruptions_wait
from mirror_lib.masked_urls import is_harmless, masked_urls
from mirror_lib.operator_limits import URL_FILES, allowed_path
from mirror_lib.private_files import make_private, refuse_foreign, without_foreign_links

#: The table of the schema version. Not Alembic's default name: the database may be shared with Airflow.
VERSION_TABLE = "mirror_ledger_version"
#: How long a writer waits for another writer.
BUSY_SECONDS = 30
#: Of libpq. Without the others, a connection to a machine that is gone hangs for 15 minutes, or for two hours (tcp(7)),
#: and with it each process that waits for a driver or renews a lock.
_POSTGRES_SETTINGS = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
#: Prepared statements belong to a connection of the server, and PgBouncer in transaction mode changes that under us.
_UNPREPARED = {"prepare_threshold": None}
_WRITE = "mirror_write"
_CHECK_URL = "Check mirror.ledger.url."
_SUPPORTED = "Use sqlite:////path/to/ledger.sqlite3 or postgresql://user:password@host/database in mirror.ledger.url."
#: Not in the value of a parameter.
_SECOND_AT = re.compile(r"@[^?@]*@|@[^?@]*\?[^=&@]*@")
_ENCODE = "Percent-encode special characters of a password: @ is %40."


@dataclass(frozen=True, slots=True)
class Database:
    """An engine whose errors are `LedgerError`."""

    engine: Engine
    #: The URL without secrets.
    shown: str

    @classmethod
    def open(cls, url: str) -> Database:
        """Prepare connections; create the folder of a SQLite file. Does not connect yet.

        Raises:
            LedgerError: the URL is not one of SQLite or PostgreSQL, or its driver is not installed.
        """
        parsed = _parse(url)
        shown = show_url(parsed)
        if parsed.get_backend_name() == "sqlite":
            return cls(_sqlite_engine(parsed, shown), shown)
        return cls(_postgres_engine(parsed, shown), shown)

    def close(self) -> None:
        """Close all idle connections; the next use opens new ones."""
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that reads.

        Raises:
            LedgerError: the database does not respond, or rejects the statement.
        """
        with self._errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction: committed at the end, rolled back on an exception. Signals wait for its end.

        Raises:
            LedgerError: the database does not respond, or rejects the statement.
        """
        writing = self.engine.execution_options(**{_WRITE: True})
        with interruptions_wait(), self._errors(), writing.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            # The exception's own text would show statements with their values, and a link to SQLAlchemy's manual.
            reason = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
            words = " ".join(str(reason).split())
            raise LedgerError(f"the ledger {self.shown} failed: {words}.", action=_action(error, words)) from error


def show_url(url: URL) -> str:
    """The URL for display, with all passwords masked."""
    query = {name: value if is_harmless(name, str(value)) else "***" for name, value in url.query.items()}
    database = url.database if url.drivername.startswith("sqlite") or not url.database else masked_urls(url.database)
    return url.set(query=query, database=database).render_as_string(hide_password=True)


def _parse(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Neither the URL nor the parser's message is shown: an unquoted password may be in either.
        raise LedgerError("mirror.ledger.url is not a URL.", action=f"{_SUPPORTED} {_ENCODE}") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("postgresql+psycopg", "sqlite", "sqlite+pysqlite"):
        raise LedgerError(f"the ledger does not support {url.drivername!r}.", action=_SUPPORTED)
    if not url.drivername.startswith("sqlite") and _SECOND_AT.search(text):
        # A part of the password would be the host, which errors show and a name server is asked for.
        raise LedgerError("mirror.ledger.url contains more than one @.", action=f"{_SUPPORTED} {_ENCODE}")
    named = {name: value for name, value in url.query.items() if name in URL_FILES}
    if url.drivername.startswith("sqlite") and url.database:
        if url.database.startswith("file:"):
            # What SQLite opens then is another file than the one that is checked here.
            raise LedgerError(
                "mirror.ledger.url is a URI of SQLite.", action="Write the path: sqlite:////var/lib/mirror/ledger.db."
            )
        named["file"] = url.database
    for name, value in named.items():
        try:
            allowed_path(Path(str(value)))
        except PermissionError as error:
            raise LedgerError(
                f"mirror.ledger.url: its {name} is not allowed: {error.strerror}.",
                action="Name another, or ask the operator.",
            ) from error
    return url


def _sqlite_engine(url: URL, shown: str) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise LedgerError("a SQLite ledger in memory would be lost with its connection.", action=_SUPPORTED)
    try:
        path = Path(str(url.database)).absolute()
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        path = without_foreign_links(path)
        for each in ("", "-journal", "-wal", "-shm"):
            # SQLite makes what a journal says.
            refuse_foreign(path.with_name(path.name + each))
    except OSError as error:
        raise LedgerError(
            f"the folder of the ledger {shown} cannot be created or used: {error.strerror}.",
            action="Make it writable, or set another file in mirror.ledger.url.",
        ) from error
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "do_connect", lambda *_: _make_private(path))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Deny other users access to the file (SQLite's default mode is wider). Its journals take the file's mode."""
    # SQLite reports a wrong location itself.
    with suppress(OSError):
        if not path.exists() and not path.name.startswith("file:"):
            make_private(path)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own BEGIN is not immediate, and is missing before DDL.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    cursor.execute("PRAGMA foreign_keys = ON")
    _use_wal(cursor)
    # With WAL, a power cut may lose the last transactions, but never damages the file; Kafka holds the positions.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Switch to WAL, so that readers and a writer do not block each other. SQLite's switch does not wait for others."""
    deadline = time.monotonic() + BUSY_SECONDS
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except Exception as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer: SQLite fails it at once.
    immediate = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _postgres_engine(url: URL, shown: str) -> Engine:
    url = url.update_query_dict({**_POSTGRES_SETTINGS, **url.query})
    try:
        return create_engine(url, pool_pre_ping=True, pool_size=2, connect_args=_UNPREPARED)
    except ImportError as error:
        raise LedgerError(
            f"the ledger {shown} needs the driver psycopg: {error}.", action="Install batch-mirror[postgres]."
        ) from error


def _action(error: SQLAlchemyError, words: str) -> str:
    if "no such table" in words or "no such column" in words or "UndefinedTable" in type(_cause(error)).__name__:
        return "Its tables are missing or old: any run of a flow creates and upgrades them."
    if "is locked" in words:
        return f"Another process has been writing for {BUSY_SECONDS} s; try again, or use PostgreSQL for the ledger."
    if "unable to open database" in words or "readonly database" in words:
        return "Make its folder and the file writable, or set another file in mirror.ledger.url."
    if "not a database" in words or "malformed" in words:
        return "Move the file away or restore it from a backup: positions in Kafka are not affected."
    if isinstance(error, IntegrityError):
        return "The rows contradict the content of the ledger, such as an unknown run."
    return f"Check that the database runs and has space. {_CHECK_URL}"


def _cause(error: SQLAlchemyError) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else None
