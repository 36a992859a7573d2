"""Signals while the ledger is written: the transaction ends first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType

import pytest
from sqlalchemy import text

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.database import Database


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
