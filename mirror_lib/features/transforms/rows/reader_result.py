"""Passes the result of a task's reader to its writer: a file on their machine.

Rows cannot contain it, since they pass through the user's own filter. Reader and writer are Python workers of one Spark
task. When the writer sees the end of its rows, the reader has ended, and has stored its message before.

Folders for temporary files are writable for all users. So each attempt has its own folder that only its user may enter,
with an unpredictable name; links are not followed, and a message is valid only with the digest by the job's secret
(HMAC, RFC 2104). It is JSON: reading it runs no code.
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
#: In memory, if this folder exists.
_IN_MEMORY = Path("/dev/shm")
_INTRUDER = (
    "Find out who created it, and remove it; users must not be able to replace each other's files in the folder for "
    "temporary files (`TMPDIR`): mode 1777."
)


def new_secret() -> str:
    """A secret that only reader and writer of one job share."""
    return secrets.token_hex(32)


class ReaderResult:
    """The message of one attempt of one task."""

    def __init__(self, secret: str, number: int, attempt: int, folder: Path | None = None) -> None:
        """Args:
        secret: of the job (`new_secret`).
        number: of the bin.
        folder: accessible for both sides; by default the machine's folder for temporary files, in memory if possible.
        """
        self._key = bytes.fromhex(secret)
        self._of = f"{number}-{attempt}".encode()
        self._base = folder or _temporary()
        self._path = self._base / f"{_PREFIX}{self._digest(b'name').hex()[:32]}"
        self._swept = False

    def leave(self, word: Any) -> None:
        """Store the result or progress of reading, as JSON data. The last message counts.

        Raises:
            MirrorError: another user created the folder.
        """
        if not self._swept:
            self._swept = True
            self._remove_forgotten()
        with suppress(FileExistsError):
            self._path.mkdir(mode=0o700)
        content = json.dumps(word, allow_nan=False).encode()
        draft = secrets.token_hex(8)
        with self._open_folder() as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(draft, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(self._digest(content) + content)
            os.replace(draft, _WORD, src_dir_fd=folder, dst_dir_fd=folder)

    def look(self) -> Any:
        """The last message; None if there is none.

        Raises:
            MirrorError: it is not from the reader.
        """
        try:
            return self._read()
        except OSError:
            return None

    def take(self) -> Any:
        """Return the message and remove it.

        Raises:
            MirrorError: there is none: rows ended before reading did. Or it is not from the reader.
        """
        try:
            word = self._read()
        except OSError as error:
            raise MirrorError(
                "the rows of a task ended before the end of its source.",
                action="A transform must not limit or sort the rows; both parts of a task must use the same folder for "
                "temporary files.",
            ) from error
        with suppress(OSError):
            (self._path / _WORD).unlink()
            self._path.rmdir()
        return word

    def _read(self) -> Any:
        with self._open_folder() as folder:
            descriptor = os.open(_WORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                written = file.read()
        digest, content = written[:_DIGEST_BYTES], written[_DIGEST_BYTES:]
        if not hmac.compare_digest(digest, self._digest(content)):
            raise MirrorError(f"{self._path / _WORD} was not written by the task that reads it.", action=_INTRUDER)
        return json.loads(content)

    @contextmanager
    def _open_folder(self) -> Iterator[int]:
        """Open the attempt's folder, after a check that it belongs to this user.

        Raises:
            FileNotFoundError: there is none.
            MirrorError: it belongs to another user, or is a link.
        """
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise
        except OSError as error:
            # A link, a file, or a folder without access.
            raise self._foreign() from error
        try:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise self._foreign()
            yield folder
        finally:
            os.close(folder)

    def _foreign(self) -> MirrorError:
        return MirrorError(f"{self._path} is not a folder of this task's user only.", action=_INTRUDER)

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self._key, self._of + b" " + content, _DIGEST)

    def _remove_forgotten(self) -> None:
        """Remove this user's folders of tasks that were killed."""
        now = time.time()
        for path in self._base.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                found = path.lstat()
                ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
                if ours and now - found.st_mtime > _OLD_SECONDS:
                    shutil.rmtree(path)


def _temporary() -> Path:
    return _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
