"""Records of a topic before and after its transforms, as values: the content of a preview.

Pure: independent of how records are read and transformed. The values are sent between processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mirror_lib.errors import MirrorError

Headers = tuple[tuple[str | None, bytes | None], ...]


class RecordPlace(NamedTuple):
    """The position of a record in its source topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record as it was read.

    Attributes:
        timestamp: epoch milliseconds; None for records in a format without timestamps.
    """

    place: RecordPlace
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class MadeRecord:
    """A record as it is to be written.

    Attributes:
        timestamp: epoch milliseconds.
        topic: None if no transform has set it: then it is the remote topic of the source topic.
        partition: None if no transform has set it: then it is that of the source.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    topic: str | None = None
    partition: int | None = None


class Change(StrEnum):
    """A part of a record that differs on the target."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    TIMESTAMP = "timestamp"
    TOPIC = "topic"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class Becomes:
    """A record that is written, as one record or as several."""

    records: tuple[MadeRecord, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that is dropped; `by` is the transform that drops it, None if unknown."""

    by: str | None = None


@dataclass(frozen=True, slots=True)
class Fails:
    """A record that cannot be transformed."""

    error: MirrorError


Outcome = Becomes | Dropped | Fails


@dataclass(frozen=True, slots=True)
class PreviewResult:
    """The result of transforms for some records; a record that is in none of these is dropped.

    Attributes:
        dropped_by: the transforms that drop records, as far as they are known.
    """

    made: Mapping[RecordPlace, tuple[MadeRecord, ...]] = field(default_factory=dict)
    failed: Mapping[RecordPlace, MirrorError] = field(default_factory=dict)
    dropped_by: Mapping[RecordPlace, str] = field(default_factory=dict)

    def outcome(self, place: RecordPlace) -> Outcome:
        """Return the outcome for one of the records."""
        if place in self.failed:
            return Fails(self.failed[place])
        if self.made.get(place):
            return Becomes(self.made[place])
        return Dropped(self.dropped_by.get(place))


@dataclass(frozen=True, slots=True)
class PreviewedRecord:
    """A record with its outcome; `record` is None if it cannot be read."""

    place: RecordPlace
    record: SourceRecord | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Preview:
    """Records of one topic, by partition and offset.

    Attributes:
        topic: of the source.
        remote_topic: its name on the target.
    """

    topic: str
    remote_topic: str
    records: tuple[PreviewedRecord, ...]

    @classmethod
    def of(
        cls,
        topic: str,
        remote_topic: str,
        records: Iterable[SourceRecord],
        unreadable: Mapping[RecordPlace, MirrorError],
        result: PreviewResult,
    ) -> Preview:
        """Combine the records that were read with the result.

        Args:
            unreadable: records that cannot be passed to a transform, and why.
        """
        shown = [PreviewedRecord(each.place, each, result.outcome(each.place)) for each in records]
        shown += [PreviewedRecord(place, None, Fails(error)) for place, error in unreadable.items()]
        return cls(topic, remote_topic, tuple(sorted(shown, key=lambda each: each.place)))

    def changes(self, record: SourceRecord, made: MadeRecord) -> tuple[Change, ...]:
        """Return what differs; the remote topic instead of the source topic is not a change."""
        same = {
            Change.KEY: made.key == record.key,
            Change.VALUE: made.value == record.value,
            Change.HEADERS: made.headers == record.headers,
            Change.TIMESTAMP: made.timestamp == record.timestamp,
            Change.TOPIC: made.topic in (None, self.remote_topic),
            Change.PARTITION: made.partition in (None, record.place.partition),
        }
        return tuple(change for change, is_same in same.items() if not is_same)

    def target(self, record: SourceRecord, made: MadeRecord) -> tuple[str, int]:
        """The topic and the partition that a record goes to."""
        topic = self.remote_topic if made.topic is None else made.topic
        return topic, record.place.partition if made.partition is None else made.partition

    @property
    def failures(self) -> tuple[PreviewedRecord, ...]:
        """The records that cannot be transformed."""
        return tuple(each for each in self.records if isinstance(each.outcome, Fails))
