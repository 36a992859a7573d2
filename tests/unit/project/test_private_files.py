"""Files of ours, and who may read them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.dev.state import exclusive, write_atomically
from mirror_lib.errors import ConfigurationError
from mirror_lib.ledger.store import Ledger
from mirror_lib.private_files import make_private, open_lock, write_private
from mirror_lib.relay.job.report import write_report
from spark_jobs import driver_host


@pytest.fixture(autouse=True)
def _permissive() -> Iterator[None]:
    """A umask that takes away nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_reads_what_is_written(tmp_path: Path) -> None:
    write_private(tmp_path / "text", "\u00e9")
    write_private(tmp_path / "bytes", b"\xff")
    make_private(tmp_path / "empty")
    write_report(tmp_path / "report.json", {})
    write_atomically(tmp_path / "state", "x")

    assert {mode(each) for each in tmp_path.iterdir()} == {0o640}
    assert (tmp_path / "text").read_text(encoding="utf-8") == "\u00e9"


def test_a_shorter_text_replaces_a_longer_one_whole(tmp_path: Path) -> None:
    write_private(tmp_path / "x", "longer")
    write_private(tmp_path / "x", "s")
    make_private(tmp_path / "x")

    assert (tmp_path / "x").read_text() == "s"


def test_nobody_else_reads_a_ledger_of_sqlite_or_its_journals(tmp_path: Path) -> None:
    path = tmp_path / "ledger" / "ledger.sqlite3"
    ledger = Ledger.open(f"sqlite:///{path}")
    ledger.migrate()

    # The journals are there as long as somebody has the ledger open.
    assert {each.suffix: mode(each) for each in path.parent.iterdir()} == dict.fromkeys(
        (".sqlite3", ".sqlite3-wal", ".sqlite3-shm"), 0o640
    )
    assert mode(path.parent) == 0o750
    ledger.close()


def test_a_lock_is_its_owner_s_and_follows_no_link(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    (tmp_path / "link").symlink_to(tmp_path / "planted")

    with pytest.raises(OSError, match="symbolic") as refusal:
        open_lock(tmp_path / "link")
    with pytest.raises(OSError, match="symbolic"), exclusive(tmp_path / "link"):
        pass

    assert mode(tmp_path / "lock") == 0o600
    assert refusal.value.errno == errno.ELOOP
    assert not (tmp_path / "planted").exists()


def test_the_driver_host_makes_no_file_through_a_link(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "socket.lock").symlink_to(tmp_path / "planted")

    with (
        pytest.raises(ConfigurationError, match=r"socket\.lock cannot be opened"),
        driver_host._alone(tmp_path / "socket"),
    ):
        pass

    assert not (tmp_path / "planted").exists()


def test_the_driver_host_locks_in_no_folder_of_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(ConfigurationError, match="accessible to other users"), driver_host._alone(tmp_path / "socket"):
        pass

    assert list(tmp_path.iterdir()) == []
