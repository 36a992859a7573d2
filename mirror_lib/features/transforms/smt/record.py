"""Records as transforms see them, and as stored in Kafka."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from mirror_lib.features.transforms.smt.values.data import DataError, Schema, Struct, Value, class_name


class Side(StrEnum):
    """The part of a record that the `$Key` and `$Value` classes of an SMT work on."""

    KEY = "key"
    VALUE = "value"


_KEY = Side.KEY


class Header(NamedTuple):
    """A header of a record: a pair of name and value, and the value's schema, None without one."""

    name: str
    value: Value
    schema: Schema | None = None


class RawRecord(NamedTuple):
    """A record as stored in Kafka."""

    #: The name on the target: MM2's task has renamed the topic before a transform sees the record.
    topic: str
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    #: Milliseconds since 1970, None for a record in a format without timestamps.
    timestamp: int | None = None


class SmtRecord(NamedTuple):
    """A record as transforms see it (`ConnectRecord`). A schema of None makes the data schemaless."""

    #: As in `RawRecord`.
    topic: str
    partition: int | None = None
    key: Value = None
    value: Value = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    # Records are many: they are not created by `_replace`, which takes three times as long, nor are members of an
    # `Enum` accessed by its class, which takes five times as long.

    def part(self, side: Side) -> tuple[Schema | None, Value]:
        """Return schema and value of one side."""
        return (self.key_schema, self.key) if side is _KEY else (self.value_schema, self.value)

    def with_part(self, side: Side, schema: Schema | None, value: Value) -> SmtRecord:
        """Return the record with another key or value."""
        topic, partition, key, before, headers, timestamp, key_schema, value_schema = self
        if side is _KEY:
            return SmtRecord(topic, partition, value, before, headers, timestamp, schema, value_schema)
        return SmtRecord(topic, partition, key, value, headers, timestamp, key_schema, schema)

    def with_topic(self, topic: str) -> SmtRecord:
        """Return the record under another topic."""
        _, partition, key, value, headers, timestamp, key_schema, value_schema = self
        return SmtRecord(topic, partition, key, value, headers, timestamp, key_schema, value_schema)

    def with_headers(self, headers: tuple[Header, ...]) -> SmtRecord:
        """Return the record with other headers."""
        topic, partition, key, value, _, timestamp, key_schema, value_schema = self
        return SmtRecord(topic, partition, key, value, headers, timestamp, key_schema, value_schema)


def require_map(value: Value, purpose: str) -> dict[str, Any]:
    """Return a schemaless value as a map (`Requirements.requireMap`).

    Raises:
        DataError: it is no map; a null is none.
    """
    if not isinstance(value, dict):
        raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {class_name(value)}")
    return value


def require_struct(value: Value, purpose: str) -> Struct:
    """Return a value with a schema as a struct (`Requirements.requireStruct`).

    Raises:
        DataError: it is no struct; a null is none.
    """
    if not isinstance(value, Struct):
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {class_name(value)}")
    return value
