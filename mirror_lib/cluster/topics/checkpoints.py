"""The topics for the translation of group offsets: reads offset-syncs, reads and writes checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.kept_records import KeptRecords
from mirror_lib.cluster.topics.mm2_formats import Checkpoint, OffsetSync, RecordFormatError
from mirror_lib.cluster.topics.reader import SmallTopicReader
from mirror_lib.cluster.topics.records import NewRecord, RecordPlace
from mirror_lib.cluster.topics.writer import InternalTopicWriter
from mirror_lib.errors import TopicMissingError

_Entry = TypeVar("_Entry", Checkpoint, OffsetSync)


@dataclass(frozen=True, slots=True)
class TopicEntries(Generic[_Entry]):
    """The records of a topic, oldest first."""

    entries: tuple[_Entry, ...] = ()
    #: Of each entry: epoch milliseconds at which it was written, None if its record has no time.
    times: tuple[int | None, ...] = ()
    #: Records in another format, such as tombstones.
    unreadable: int = 0


def read_offset_syncs(connection: Connection, topic: str, *, timeout: float = 30.0) -> TopicEntries[OffsetSync]:
    """All offset-syncs that still exist; empty if there is no topic.

    Raises:
        MirrorError: the topic cannot be read to its end.
    """
    return _read(connection, topic, OffsetSync.decode, timeout, newest_only=False)


def read_checkpoints(connection: Connection, topic: str, *, timeout: float = 30.0) -> TopicEntries[Checkpoint]:
    """The newest checkpoint of each key; empty if there is no topic.

    Raises:
        MirrorError: the topic cannot be read to its end.
    """
    return _read(connection, topic, Checkpoint.decode, timeout, newest_only=True)


def _read(
    connection: Connection,
    topic: str,
    decode: Callable[[bytes | None, bytes | None], _Entry],
    timeout: float,
    *,
    newest_only: bool,
) -> TopicEntries[_Entry]:
    def is_wanted(key: bytes | None, value: bytes | None) -> bool:
        try:
            decode(key, value)
        except RecordFormatError:
            return False
        return True

    reader = SmallTopicReader(connection, topic, timeout=timeout)
    try:
        # MM2 uses only partition 0.
        found = reader.read({}, KeptRecords(is_wanted, newest_only=newest_only), partitions=(0,))
    except TopicMissingError:
        return TopicEntries()
    finally:
        reader.close()
    entries = tuple(decode(record.key, record.value) for record in found.records)
    return TopicEntries(entries, tuple(record.timestamp_ms for record in found.records), found.unwanted)


class CheckpointWriter(InternalTopicWriter):
    """Writes checkpoints as MM2 does: to partition 0, with the time of the pass. A duplicate does no harm."""

    def write(self, checkpoints: Iterable[Checkpoint], *, timestamp_ms: int) -> tuple[RecordPlace, ...]:
        """Write checkpoints and wait for their acknowledgement.

        Raises:
            TopicMissingError: the topic does not exist.
            MirrorError: a record was not acknowledged; others may have been.
        """
        return self._write(NewRecord(0, each.key(), each.value(), timestamp_ms) for each in checkpoints)
