"""How the reading half of a task tells the writing half what became of the source: a file on their machine.

Rows cannot say it, since they go through the user's own filter. The two halves are Python workers of one Spark task.
When the writer sees the end of its rows, the reader has ended, and has left its word before.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mirror_lib.errors import MirrorError

_PREFIX = "batch-mirror-rows-"
_OLD_SECONDS = 24 * 3600.0


class HandOver:
    """The place where one attempt of one task leaves its word."""

    def __init__(self, nonce: str, number: int, attempt: int, folder: Path | None = None) -> None:
        """Args:
        nonce: of the job.
        number: of the bin.
        folder: both halves see; the machine's for temporary files by default.
        """
        self._folder = folder or Path(tempfile.gettempdir())
        self._path = self._folder / f"{_PREFIX}{nonce}-{number}-{attempt}"

    def leave(self, word: Any) -> None:
        """Say how reading ended, or how it goes on: what pickles. The last word counts."""
        for old in self._forgotten():
            with suppress(OSError):
                old.unlink()
        written = self._path.with_suffix(".part")
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pickle.dump(word, file)
        written.replace(self._path)

    def look(self) -> Any:
        """What was left so far; None where nothing was."""
        try:
            return pickle.loads(self._path.read_bytes())
        except OSError:
            return None

    def take(self) -> Any:
        """What was left, and leave nothing behind.

        Raises:
            MirrorError: nothing was left: rows ended before reading did.
        """
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise MirrorError(
                "the rows of a task ended before its source was read to the end.",
                action="A transform must not limit or sort the rows; both halves of a task must see the same folder "
                "for temporary files.",
            ) from error
        with suppress(OSError):
            self._path.unlink()
        return pickle.loads(content)

    def _forgotten(self) -> Iterator[Path]:
        """Files of tasks that were killed."""
        now = time.time()
        for path in self._folder.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if now - path.stat().st_mtime > _OLD_SECONDS:
                    yield path
