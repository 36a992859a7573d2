"""Records of one side as digests of a fixed size, sorted by key into buckets, most of them on disk.

An entry takes 32 bytes: 16 of the key's digest, 8 of the offset, 8 of the content's digest. The digests are keyed at
random (BLAKE2b), so that nobody can make two keys or contents that look the same. The first byte of a key's digest
chooses its bucket, and buckets are compared one after the other: memory holds one bucket's keys of both sides.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from mirror_lib.records.varint import decode_varint

#: Of one record. `content` is 0 where it has no value, a tombstone.
ENTRY = np.dtype([("high", "<u8"), ("low", "<u8"), ("offset", "<i8"), ("content", "<u8")])
Entries = NDArray[np.void]
BUCKETS = 256
TOMBSTONE = 0
_KEY_BYTES = 16
_CONTENT_BYTES = 8
_WAITING_BYTES = 32 * 1024
_READ_AT_ONCE = 1 << 18


class Digester:
    """Makes entries of records."""

    def __init__(self, secret: bytes) -> None:
        """Args:
        secret: of both sides the same, and of this comparison alone.
        """
        self._secret = secret

    def entry(self, offset: int, tail: bytes) -> bytes | None:
        """The entry of a record from its offset and what follows its deltas on the wire; None for one without a key.

        Raises:
            RecordError: the bytes are no record.
        """
        size, at = decode_varint(tail, 0)
        if size < 0:
            return None
        content = tail[at + size :]
        digest = self.of_key(tail[at : at + size])
        return digest + offset.to_bytes(8, "little") + self._of_content(content)

    def of_key(self, key: bytes) -> bytes:
        """The digest of a key, 16 bytes."""
        return hashlib.blake2b(key, digest_size=_KEY_BYTES, key=self._secret).digest()

    def _of_content(self, content: bytes) -> bytes:
        """Return the digest of value and headers. All tombstones have the same digest, regardless of their headers."""
        if decode_varint(content, 0)[0] < 0:
            return TOMBSTONE.to_bytes(_CONTENT_BYTES, "little")
        found = hashlib.blake2b(content, digest_size=_CONTENT_BYTES, key=self._secret).digest()
        return found if any(found) else b"\1" + found[1:]


class Spill:
    """The entries of one side; a context, since it may hold a file. A small side stays in memory."""

    def __init__(self, *, waiting_bytes: int = _WAITING_BYTES, read_at_once: int = _READ_AT_ONCE) -> None:
        """Args:
        waiting_bytes: of a bucket that stay in memory.
        read_at_once: entries of a bucket that are read before only the newest of each key are kept.
        """
        self._waiting_bytes = waiting_bytes
        self._read_at_once = read_at_once
        self._waiting = [bytearray() for _ in range(BUCKETS)]
        self._file: IO[bytes] | None = None
        #: Position and size of the parts of each bucket in the file.
        self._parts: list[list[tuple[int, int]]] = [[] for _ in range(BUCKETS)]
        self._written = 0
        self.records = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, entry: bytes) -> None:
        """Take the entry of one record.

        Raises:
            OSError: the folder for temporary files is full.
        """
        bucket = entry[0]
        waiting = self._waiting[bucket]
        waiting += entry
        self.records += 1
        if len(waiting) >= self._waiting_bytes:
            if self._file is None:
                # It has no name, so the file is gone when it is closed.
                self._file = tempfile.TemporaryFile(prefix="mirror-verify-")  # noqa: SIM115 - closed by the context
            self._file.seek(self._written)
            self._file.write(waiting)
            self._parts[bucket].append((self._written, len(waiting)))
            self._written += len(waiting)
            self._waiting[bucket] = bytearray()

    @property
    def on_disk(self) -> bool:
        """True if it was too large for memory."""
        return self._file is not None

    def newest(self, bucket: int) -> Entries:
        """The newest entry of each key of a bucket, sorted by key."""
        kept = np.empty(0, ENTRY)
        read: list[Entries] = []
        count = 0
        for part in self._of_bucket(bucket):
            entries = np.frombuffer(part, ENTRY)
            read.append(entries)
            count += len(entries)
            if count >= self._read_at_once:
                kept, read, count = newest_of(np.concatenate((kept, *read))), [], 0
        return newest_of(np.concatenate((kept, *read)))

    def _of_bucket(self, bucket: int) -> Iterator[bytes]:
        for position, size in self._parts[bucket]:
            assert self._file is not None
            self._file.seek(position)
            yield self._file.read(size)
        yield bytes(self._waiting[bucket])


def newest_of(entries: Entries) -> Entries:
    """The newest entry of each key, sorted by key."""
    if not len(entries):
        return entries
    by_key = entries[np.lexsort((entries["offset"], entries["low"], entries["high"]))]
    last = np.ones(len(by_key), bool)
    last[:-1] = ~_same_key(by_key[:-1], by_key[1:])
    return by_key[last]


def join_keys(mine: Entries, theirs: Entries) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the shared keys on each side; both hold a key once, sorted."""
    both = np.concatenate((mine, theirs))
    side = np.repeat(np.array([0, 1], np.int8), (len(mine), len(theirs)))
    order = np.lexsort((side, both["low"], both["high"]))
    pair = np.flatnonzero(_same_key(both[order[:-1]], both[order[1:]])) if len(both) else np.empty(0, np.intp)
    return order[pair], order[pair + 1] - len(mine)


def _same_key(these: Entries, those: Entries) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (these["high"] == those["high"]) & (these["low"] == those["low"])
    return same
