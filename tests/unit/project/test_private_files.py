"""Files of ours, and who may read them."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mirror_lib.cli.written import write_file
from mirror_lib.copy.job.report import write_report
from mirror_lib.errors import ConfigurationError, LedgerError, MirrorError
from mirror_lib.features.demo.state import exclusive
from mirror_lib.features.metrics_file import write_metrics_file
from mirror_lib.features.pack.executor_archive import ExecutorEnvironment, write_archive
from mirror_lib.features.translate.spark_checkpoint import rewrite_checkpoint
from mirror_lib.features.warm_spark.airflow.detached_driver import FOLDER_PREFIX, show_log
from mirror_lib.features.warm_spark.class_archive import write_class_archive
from mirror_lib.ledger.store import Ledger
from mirror_lib.private_files import draft_of, make_private, open_lock, open_log, write_atomically, write_private
from spark_jobs import driver_host

_NOBODY = 65_534
_SYSTEM = (Path("/dev/stdout"), Path("/dev/null"))


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


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path | None], Path]]:
    """Makes an entry of another user in the folder that all users share: a link, or a file for None."""
    planted: list[Path] = []

    def make(leads_to: Path | None) -> Path:
        path = Path(tempfile.gettempdir(), f"mirror-test-{uuid.uuid4().hex}")
        planted.append(path)
        if leads_to is None:
            path.write_text("theirs")
        else:
            path.symlink_to(leads_to)
        if os.geteuid() == 0:
            os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
        else:
            # Then all that this user has made is another user's.
            monkeypatch.setattr(os, "geteuid", lambda: _NOBODY)
        return path

    yield make
    for path in planted:
        path.unlink(missing_ok=True)


_WRITERS: dict[str, Callable[[Path], object]] = {
    "report": lambda path: write_report(path, {}),
    "log": lambda path: os.close(open_log(path)),
    "metrics": lambda path: write_metrics_file(path, b"x"),
    "configuration": lambda path: write_file(path, b"x", force=True),
    "executors' archive": lambda path: write_archive(ExecutorEnvironment("3.11", "linux", ()), path),
    "class archive": lambda path: write_class_archive(path, submit=Path("/bin/false"), program=path, settings={}),
    "ledger": lambda path: Ledger.open(f"sqlite:///{path}").migrate(),
    "checkpoint": lambda path: rewrite_checkpoint(path.parent, path, lambda source, offset: (source, offset or 0)),
}


@pytest.mark.parametrize("writer", _WRITERS)
def test_nothing_is_written_through_a_link_of_another_user(
    plant: Callable[[Path | None], Path], tmp_path: Path, writer: str
) -> None:
    """Through the path itself, and through a folder above it."""
    victim = tmp_path / "victim"

    for path in (plant(victim), plant(tmp_path) / "victim"):
        with pytest.raises((OSError, MirrorError)):
            _WRITERS[writer](path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal", "-shm"])
def test_no_ledger_and_no_log_of_another_user_is_continued(plant: Callable[[Path | None], Path], suffix: str) -> None:
    theirs = plant(None)
    named = theirs.rename(f"{theirs}{suffix}")
    try:
        with pytest.raises(LedgerError, match="cannot be created or used"):
            Ledger.open(f"sqlite:///{theirs}").migrate()
        with pytest.raises(PermissionError):
            open_log(named)
        with pytest.raises(PermissionError):
            open_lock(named)
        assert named.read_text() == "theirs"
    finally:
        named.unlink()


def test_own_links_are_followed_and_devices_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("../report")
    for _ in range(2):
        write_private(tmp_path / "folder" / "link", "x")
    before = [os.lstat(path).st_ino for path in _SYSTEM]
    # Here stdout is a regular file.
    write_private(_SYSTEM[0], "shown")
    write_private(_SYSTEM[1], "x")
    for path in (*_SYSTEM, Path("/dev/no-such-device")):
        with pytest.raises(PermissionError), draft_of(path):
            pass

    assert (tmp_path / "report").read_text() == "x"
    assert (tmp_path / "real" / "link").is_symlink()
    assert capfd.readouterr().out == "shown"
    assert [os.lstat(path).st_ino for path in _SYSTEM] == before
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="link"):
        write_private(tmp_path / "a", "x")


def test_a_draft_whose_folder_was_exchanged_replaces_nothing(tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_text("before")
    opened = ExitStack()

    draft = opened.enter_context(draft_of(output))
    draft.parent.rename(tmp_path / "moved")
    draft.parent.mkdir()
    draft.write_text("of another user")
    with pytest.raises(FileNotFoundError):
        opened.close()

    assert output.read_text() == "before"


def test_a_folder_of_the_ledger_that_no_task_has_made_is_neither_read_nor_removed(tmp_path: Path) -> None:
    made = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=tmp_path))
    others = [tmp_path / "home", tmp_path / f"{FOLDER_PREFIX}shared", tmp_path / f"{FOLDER_PREFIX}link"]
    for folder in others[:2]:
        folder.mkdir(mode=0o777)
    others[2].symlink_to(others[0])
    for folder in (made, *others[:2]):
        (folder / "driver.log").write_text("a line\n")

    assert [show_log(folder) for folder in (made, *others)] == [True, False, False, False]

    assert not made.exists()
    assert all((folder / "driver.log").exists() for folder in others)


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
