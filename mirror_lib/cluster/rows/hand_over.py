"""How the reading half of a task tells the writing half what became of the source: a file on their machine.

Rows cannot say it, since they go through the user's own filter. The two halves are Python workers of one Spark task.
When the writer sees the end of its rows, the reader has ended, and has left its word before.

Folders for temporary files belong to everybody. So each attempt has a folder of its own that only its user may enter,
under a name that nobody can know before; nothing is followed that could be a link, and a word counts only with the
digest that the job's secret gives it (HMAC, RFC 2104). It is JSON: to read it runs nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mirror_lib.errors import MirrorError

_PREFIX = "batch-mirror-rows-"
_WORD = "word"
_DIGEST = hashlib.sha256
_DIGEST_BYTES = _DIGEST().digest_size
_OLD_SECONDS = 24 * 3600.0
#: In memory, where there is such a folder.
_IN_MEMORY = Path("/dev/shm")
_INTRUDER = (
    "Find out who made it, and remove it; the folder for temporary files (`TMPDIR`) must be one in which users cannot "
    "replace each other's files (mode 1777)."
)


def new_secret() -> str:
    """What the halves of one job know and nobody else."""
    return secrets.token_hex(32)


class HandOver:
    """The place where one attempt of one task leaves its word."""

    def __init__(self, secret: str, number: int, attempt: int, folder: Path | None = None) -> None:
        """Args:
        secret: of the job (`new_secret`).
        number: of the bin.
        folder: both halves see; the machine's for temporary files by default, in memory where it has one.
        """
        self._key = bytes.fromhex(secret)
        self._of = f"{number}-{attempt}".encode()
        self._base = folder or _temporary()
        self._path = self._base / f"{_PREFIX}{self._digest(b'name').hex()[:32]}"
        self._swept = False

    def leave(self, word: Any) -> None:
        """Say how reading ended, or how it goes on: what JSON can say. The last word counts.

        Raises:
            MirrorError: somebody else made the folder.
        """
        if not self._swept:
            self._swept = True
            self._remove_forgotten()
        with suppress(FileExistsError):
            self._path.mkdir(mode=0o700)
        content = json.dumps(word, allow_nan=False).encode()
        draft = secrets.token_hex(8)
        with self._opened() as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(draft, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(self._digest(content) + content)
            os.replace(draft, _WORD, src_dir_fd=folder, dst_dir_fd=folder)

    def look(self) -> Any:
        """What was left so far; None where nothing was.

        Raises:
            MirrorError: it was not left by the other half.
        """
        try:
            return self._read()
        except OSError:
            return None

    def take(self) -> Any:
        """What was left, and leave nothing behind.

        Raises:
            MirrorError: nothing was left: rows ended before reading did. Or it was not left by the other half.
        """
        try:
            word = self._read()
        except OSError as error:
            raise MirrorError(
                "the rows of a task ended before its source was read to the end.",
                action="A transform must not limit or sort the rows; both halves of a task must see the same folder "
                "for temporary files.",
            ) from error
        with suppress(OSError):
            (self._path / _WORD).unlink()
            self._path.rmdir()
        return word

    def _read(self) -> Any:
        with self._opened() as folder:
            descriptor = os.open(_WORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                written = file.read()
        digest, content = written[:_DIGEST_BYTES], written[_DIGEST_BYTES:]
        if not hmac.compare_digest(digest, self._digest(content)):
            raise MirrorError(f"{self._path / _WORD} was not written by the task that reads it.", action=_INTRUDER)
        return json.loads(content)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The attempt's folder, which is ours alone.

        Raises:
            FileNotFoundError: there is none.
            MirrorError: it is somebody else's, or a link.
        """
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            # A link, a file, or a folder that we may not enter.
            raise self._foreign() from error
        try:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise self._foreign()
            yield folder
        finally:
            os.close(folder)

    def _foreign(self) -> MirrorError:
        return MirrorError(f"{self._path} is not a folder of this task's user alone.", action=_INTRUDER)

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self._key, self._of + b" " + content, _DIGEST)

    def _remove_forgotten(self) -> None:
        """Remove folders of ours whose tasks were killed."""
        now = time.time()
        for path in self._base.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                found = path.lstat()
                ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
                if ours and now - found.st_mtime > _OLD_SECONDS:
                    shutil.rmtree(path)


def _temporary() -> Path:
    return _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
