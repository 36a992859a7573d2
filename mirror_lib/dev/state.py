"""Where local state lives: one ignored folder of the project, and the folder of jars that projects may share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: Overrides the state folder, so that tests and a second demo keep apart from the first.
STATE_DIR_VARIABLE = "MIRROR_STATE_DIR"
#: Overrides the folder of fetched jars, so that clones and test runs fetch them once.
JARS_DIR_VARIABLE = "MIRROR_JARS_DIR"


def project_root() -> Path:
    """The folder that holds `pyproject.toml`, or the current one when the package is installed without it."""
    candidate = Path(__file__).resolve().parents[2]
    return candidate if (candidate / "pyproject.toml").is_file() else Path.cwd()


def state_dir() -> Path:
    """The folder of everything that running locally writes; not created here."""
    override = os.environ.get(STATE_DIR_VARIABLE)
    return Path(override).absolute() if override else project_root() / ".mirror"


def jars_dir() -> Path:
    """The folder with one sub-folder per set of jars; not created here."""
    override = os.environ.get(JARS_DIR_VARIABLE)
    return Path(override).absolute() if override else state_dir() / "jars"


@contextmanager
def exclusive(lock_file: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a file lock that ends with this process at the latest.

    Args:
        lock_file: created if missing, and left in place: removing it would let two holders in.
        waiting: called once when somebody else holds the lock, before waiting for it.
    """
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, text: str) -> None:
    """Replace a small file so that a reader sees the old or the new text and never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
