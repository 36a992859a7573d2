"""Connections to the ledger: which URLs are taken, how writers meet, and what errors say.

Signals while the ledger is written: the transaction ends first.
"""

from __future__ import annotations

import pickle
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import text

from mirror_lib.errors import LedgerError
from mirror_lib.ledger import database as database_module
from mirror_lib.ledger.database import Database
from mirror_lib.ledger.store import Ledger


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    """An empty SQLite database."""
    with closing(Database.open(f"sqlite:///{tmp_path}/ledger.sqlite3")) as database:
        yield database


def test_a_url_that_cannot_hold_a_ledger_is_refused_with_examples() -> None:
    for url, what in {
        "": "not a URL",
        "ledger.sqlite3": "not a URL",
        "postgresql://me:pa/ss@host:port/db": "not a URL",
        "mysql://me:secret@host/db": "'mysql'",
        "postgresql+psycopg2://me:secret@host/db": r"'postgresql\+psycopg2'",
        "sqlite://": "in memory",
        "sqlite:///:memory:": "in memory",
    }.items():
        with pytest.raises(LedgerError, match=what) as caught:
            Ledger.open(url)

        assert "sqlite:////" in caught.value.action, url
        assert "postgresql://" in caught.value.action, url
        assert not any(secret in str(caught.value) for secret in ("secret", "pa/ss")), url


def test_every_common_name_of_postgresql_means_psycopg_3() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        database = Database.open(f"{scheme}://host/db")

        assert (database.engine.dialect.name, database.engine.dialect.driver) == ("postgresql", "psycopg"), scheme


def test_a_server_whose_machine_is_gone_is_noticed(postgres_url: str) -> None:
    """By default Linux sends unanswered data again for 15 minutes, and looks at a silent connection after two hours."""
    for query, milliseconds in (("", "30000"), ("tcp_user_timeout=7000", "7000")):
        url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}{query}"

        with closing(Database.open(url)) as database, database.read() as connection:
            session: Any = connection.connection.driver_connection
            used = session.info.get_parameters()

        assert used["tcp_user_timeout"] == milliseconds
        assert {name: value for name, value in used.items() if name.startswith("keepalives_")} == {
            "keepalives_idle": "30",
            "keepalives_interval": "10",
            "keepalives_count": "3",
        }


def test_passwords_are_masked_wherever_the_url_has_them() -> None:
    url = "postgresql://me:S3CRET1@host/db?sslmode=require&passwd=S3CRET2&sslpassword=S3CRET3"

    shown = Database.open(url).shown

    assert "S3CRET" not in shown
    assert "me:***@host/db" in shown
    assert "sslmode=require" in shown
    assert "S3CRET" not in Database.open("postgresql://me@host/db;password=S3CRET").shown


@pytest.mark.parametrize("password", ["p@S3CRET", "@S3CRET", "p@S3CRET/x", "a/b@S3CRET", "p@S3CRET:1", "p@a?b@S3CRET"])
def test_a_password_with_an_at_sign_is_refused_and_not_shown_as_a_host(password: str) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.url") as caught:
        Database.open(f"postgresql://me:{password}@host/db")

    assert "S3CRET" not in f"{caught.value} {caught.value.attributes()}"
    assert "%40" in caught.value.action


def test_an_unreachable_server_is_named_without_its_password() -> None:
    ledger = Ledger.open("postgresql://me:S3CRET1@127.0.0.1:1/db?sslpassword=S3CRET2")

    with pytest.raises(LedgerError, match=r"127\.0\.0\.1:1/db") as caught:
        ledger.migrate()

    assert "S3CRET" not in str(caught.value)
    assert "S3CRET" not in str(caught.value.attributes())
    assert "mirror.ledger.url" in caught.value.action


def test_a_sqlite_ledger_creates_its_folder(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/not/yet/ledger.sqlite3") as ledger:
        ledger.migrate()

    assert (tmp_path / "not" / "yet" / "ledger.sqlite3").is_file()


def test_a_file_that_cannot_be_a_ledger_is_an_error_with_advice(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    orders.write_bytes(b"These are orders, not a database. " * 100)

    with pytest.raises(LedgerError, match="cannot be created") as no_folder:
        Ledger.open(f"sqlite:///{orders}/ledger.sqlite3")
    with pytest.raises(LedgerError, match="not a database") as no_database:
        Ledger.open(f"sqlite:///{orders}").migrate()

    assert "mirror.ledger.url" in no_folder.value.action
    assert "restore it" in no_database.value.action


def test_sqlite_runs_in_wal_mode_with_foreign_keys_and_a_busy_timeout(sqlite: Database) -> None:
    with sqlite.read() as connection:
        pragmas = {name: connection.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "foreign_keys")}
        timeout = connection.scalar(text("PRAGMA busy_timeout"))

    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1}
    assert timeout == database_module.BUSY_SECONDS * 1000


def test_a_writer_waits_for_another_and_then_sees_what_it_wrote(sqlite: Database) -> None:
    """A transaction that reads, then writes, would fail at once without BEGIN IMMEDIATE."""
    with sqlite.write() as connection:
        connection.execute(text("CREATE TABLE numbers (n INTEGER)"))
        connection.execute(text("INSERT INTO numbers VALUES (0)"))
    failures: list[BaseException] = []

    def count() -> None:
        try:
            for _ in range(20):
                with sqlite.write() as connection:
                    present = connection.scalar(text("SELECT n FROM numbers"))
                    connection.execute(text("UPDATE numbers SET n = :n"), {"n": present + 1})
        except BaseException as error:  # a thread's errors would be lost
            failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with sqlite.read() as connection:
        assert connection.scalar(text("SELECT n FROM numbers")) == 80


def test_readers_are_not_stopped_by_a_writer(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        ledger.migrate()
        with ledger.database.write() as connection:
            connection.execute(text("DELETE FROM run"))

            assert ledger.runs() == ()


def test_a_ledger_that_stays_locked_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0)
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        ledger.migrate()
        other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(LedgerError, match="locked") as caught:
            ledger.start_run(run_id="r1", flow="a->b", trigger="cli")
        other.close()

    assert "PostgreSQL" in caught.value.action


def test_a_failed_transaction_leaves_nothing_behind(database_url: str) -> None:
    insert = text("INSERT INTO numbers VALUES (1)")
    with closing(Database.open(database_url)) as database:
        with database.write() as connection:
            connection.execute(text("CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))

        def insert_twice() -> None:
            with database.write() as connection:
                connection.execute(insert)
                connection.execute(insert)

        with pytest.raises(LedgerError, match="numbers"):
            insert_twice()

        with database.read() as connection:
            assert connection.scalar(text("SELECT count(*) FROM numbers")) == 0


def test_errors_of_the_database_pickle_like_all_others(database_url: str) -> None:
    """They cross process borders in Airflow and Spark."""
    with Ledger.open(database_url) as ledger, pytest.raises(LedgerError) as caught:
        ledger.runs()

    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert "tables are missing" in copied.action


@pytest.mark.integration
def test_a_connection_that_broke_while_idle_is_replaced(empty_postgres_url: str) -> None:
    with Ledger.open(empty_postgres_url) as ledger:
        ledger.migrate()
        with Ledger.open(empty_postgres_url) as other, other.database.write() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )
            )

        assert ledger.runs() == ()


@pytest.mark.integration
def test_a_refused_login_is_told_in_the_databases_words_without_the_password(postgres_url: str) -> None:
    with Ledger.open(postgres_url) as ledger, ledger.database.write() as connection:
        connection.execute(text("CREATE ROLE closed NOLOGIN"))

    with pytest.raises(LedgerError, match="closed") as caught:
        Ledger.open(postgres_url.replace("mirror:unchecked", "closed:hidden")).migrate()

    assert "hidden" not in str(caught.value)


class Interrupted(BaseException):
    """Raised by the handler of a driver's SIGTERM."""


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A table `t`; SIGTERM interrupts the main thread."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with closing(Database.open(f"sqlite:///{tmp_path}/ledger.sqlite3")) as opened:
            with opened.write() as connection:
                connection.execute(text("CREATE TABLE t (n INTEGER UNIQUE)"))
            yield opened
    finally:
        signal.signal(signal.SIGTERM, before)


def _rows(database: Database) -> list[int]:
    with database.read() as connection:
        return [row.n for row in connection.execute(text("SELECT n FROM t ORDER BY n"))]


def test_given_a_signal_during_a_transaction_then_it_is_committed_before_the_interruption(database: Database) -> None:
    def write() -> None:
        with database.write() as connection:
            connection.execute(text("INSERT INTO t VALUES (1)"))
            signal.raise_signal(signal.SIGTERM)
            connection.execute(text("INSERT INTO t VALUES (2)"))

    with pytest.raises(Interrupted):
        write()

    assert _rows(database) == [1, 2]
    assert signal.getsignal(signal.SIGTERM) is _interrupt


def test_given_a_signal_and_a_statement_that_fails_then_the_transaction_is_rolled_back_and_interrupted(
    database: Database,
) -> None:
    def write() -> None:
        with database.write() as connection:
            signal.raise_signal(signal.SIGTERM)
            connection.execute(text("INSERT INTO t VALUES (1), (1)"))

    with pytest.raises(Interrupted) as interrupted:
        write()

    assert isinstance(interrupted.value.__context__, LedgerError)
    assert _rows(database) == []


def test_given_transactions_of_two_databases_in_each_other_then_both_end_before_the_interruption(
    database: Database, tmp_path: Path
) -> None:
    with closing(Database.open(f"sqlite:///{tmp_path}/other.sqlite3")) as other:

        def write() -> None:
            with database.write() as connection:
                with other.write() as inner:
                    inner.execute(text("CREATE TABLE t (n INTEGER)"))
                    signal.raise_signal(signal.SIGTERM)
                    inner.execute(text("INSERT INTO t VALUES (1)"))
                connection.execute(text("INSERT INTO t VALUES (2)"))

        with pytest.raises(Interrupted):
            write()

        assert (_rows(other), _rows(database)) == ([1], [2])


def test_a_transaction_of_another_thread_changes_no_handler(database: Database) -> None:
    seen: list[object] = []

    def write() -> None:
        with database.write() as connection:
            connection.execute(text("INSERT INTO t VALUES (1)"))
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()

    assert seen == [_interrupt]
    assert _rows(database) == [1]
