"""Decode keys and values with a schema id in front into columns, and encode them again.

A topic's keys and values are read by the latest version of their subject (`TopicNameStrategy`), whatever version wrote
them, and written by that version. So all records of a topic have one type, and fields of later versions have their
defaults in records of earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms import model
from mirror_lib.features.transforms.model import DataFormat
from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.avro_columns import avro_column
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError, SchemaMissingError
from mirror_lib.features.transforms.schemas.preflight import compare, subject_of_topic
from mirror_lib.features.transforms.schemas.protobuf import ProtobufCodec
from mirror_lib.features.transforms.schemas.protobuf_columns import fill, protobuf_column
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import BasicLogin, RegistryAccess
from mirror_lib.features.transforms.schemas.typed_column import TypedColumn, optional
from mirror_lib.features.transforms.schemas.wire import frame_bytes, protobuf_frame, schema_id

_FIRST_MESSAGE = (0,)


@dataclass(frozen=True, slots=True)
class SideReader:
    """How one side of the records of some topics is read and written.

    Attributes:
        side: `key` or `value`.
        format: Avro or Protobuf.
        registry: of the source.
        ids: by source topic, of the schema that is read and written by.
    """

    side: str
    format: DataFormat
    registry: RegistryAccess
    ids: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SideRenumbering:
    """How the schema ids of one side become those of the target.

    Attributes:
        side: `key` or `value`.
        source: the registry of the ids.
        target: the registry of the new ids.
        target_topics: the target's names of source topics, which subjects are named after.
    """

    side: str
    source: RegistryAccess
    target: RegistryAccess
    target_topics: Mapping[str, str]


class SideCodec:
    """One side of the records of one topic.

    Raises:
        SchemaRegistryError: from its methods, when the registry does not answer or lacks something.
        SchemaFormatError: likewise, when bytes or a value are not what the schema says.
    """

    def __init__(self, reader: SideReader, topic: str) -> None:
        self._number = reader.ids[topic]
        self._is_avro = reader.format is DataFormat.AVRO
        self._avro, self._protobuf = _codecs(reader.registry)
        #: The column type with its conversions in both directions.
        self.column: TypedColumn
        if self._is_avro:
            self.column = avro_column(self._avro.schema(self._number))
        else:
            self.column = protobuf_column(self._protobuf.schema(self._number).message_class(_FIRST_MESSAGE))
        self._out, self._back = optional(self.column.out), optional(self.column.back)

    def decode(self, framed: bytes | None) -> Any:
        """Return the value of the column; null is None."""
        if framed is None:
            return None
        try:
            if self._is_avro:
                return self._out(self._avro.decode(framed))
            frame = protobuf_frame(framed)
            if frame is not None and frame.message_indexes != _FIRST_MESSAGE:
                raise SchemaFormatError(
                    f"a record uses the message type {list(frame.message_indexes)} of its schema, not the first one.",
                    action="Only the first message type of a schema is decoded; do not decode such records.",
                )
            return self._out(self._protobuf.decode(framed))
        except (ValueError, OverflowError) as error:
            raise SchemaFormatError(
                f"a record does not fit into the current type of its subject: {error}.",
                action="Check the versions of its subject.",
            ) from error

    def encode(self, value: Any) -> bytes | None:
        """Return the bytes of a transform's result, with the schema id of the source in front."""
        if value is None:
            return None
        try:
            if self._is_avro:
                return self._avro.encode(self._number, self._back(value))
            message = self._protobuf.schema(self._number).message_class(_FIRST_MESSAGE)()
            fill(message, self._back(value))
            return frame_bytes(self._number, _FIRST_MESSAGE) + self._protobuf.schema(self._number).encode(message)
        except (ValueError, TypeError, AttributeError) as error:
            raise SchemaFormatError(
                f"the result of a transform does not match the schema with the id {self._number}: {error}.",
                action="Make the transform keep the schema's fields and types, or write text or bytes.",
            ) from error


class SchemaRenumbering:
    """Translates schema ids of the source to those of the target, each looked up once."""

    def __init__(self, sides: SideRenumbering) -> None:
        self._sides = sides
        self._source, self._target = registry_at(sides.source), registry_at(sides.target)
        self._known: dict[tuple[str, int], int] = {}

    def target_id(self, topic: str, number: int) -> int:
        """Return the id of the same schema at the target.

        Raises:
            SchemaMissingError: one of the registries does not have it.
            SchemaRegistryError: one of them does not respond.
        """
        known = self._known.get((topic, number))
        if known is None:
            known = self._known[topic, number] = self._query_target_id(topic, number)
        return known

    def renumber(self, topic: str, framed: bytes | None) -> bytes | None:
        """Return a key or value with the target's id; unchanged if it has none."""
        number = schema_id(framed)
        if number is None or framed is None:
            return framed
        found = self.target_id(topic, number)
        return framed if found == number else frame_bytes(found) + framed[len(frame_bytes(found)) :]

    def _query_target_id(self, topic: str, number: int) -> int:
        key = self._sides.side == "key"
        here, there = (subject_of_topic(name, key=key) for name in (topic, self._sides.target_topics.get(topic, topic)))
        plan = compare(
            self._source, self._target, {number: (here,)}, target_subject=lambda name: there if name == here else name
        )
        for each in plan.identities:
            if each.target_id is not None:
                return each.target_id
        lacking = "source" if plan.unknown else "target"
        raise SchemaMissingError(
            f"the {lacking}'s schema registry does not have the schema with the id {number} of {here}.",
            action=f"Register it there under {there}." if lacking == "target" else "Check the registry's address.",
        )


def access_of(registry: model.SchemaRegistry) -> RegistryAccess:
    """Return how to connect to a registry of the settings."""
    login = None if registry.user is None else BasicLogin(registry.user, registry.password or "")
    return RegistryAccess(registry.urls, login)


@lru_cache(maxsize=16)
def registry_at(access: RegistryAccess) -> SchemaRegistry:
    """Return the only client of a registry in this process."""
    return SchemaRegistry(access)


@lru_cache(maxsize=16)
def _codecs(access: RegistryAccess) -> tuple[AvroCodec, ProtobufCodec]:
    registry = registry_at(access)
    return AvroCodec(registry), ProtobufCodec(registry)


def reader_of(side: str, chosen: DataFormat, registry: model.SchemaRegistry, topics: Mapping[str, str]) -> SideReader:
    """Return the reader of one side of the records of some topics, by the latest versions of their subjects.

    Args:
        topics: source topics, with their names at the target.

    Raises:
        ConfigurationError: a topic has no subject.
        SchemaRegistryError: the registry does not respond.
    """
    access = access_of(registry)
    ids = {}
    for topic in topics:
        subject = subject_of_topic(topic, key=side == "key")
        try:
            found = registry_at(access).latest(subject)
        except SchemaMissingError as error:
            raise ConfigurationError(
                f"the source's schema registry has no subject {subject}, which is used to decode the {side}s of "
                f"{topic}.",
                action=f"Register the schema under it, or set another decode.{side}.",
            ) from error
        if found.schema.type.value.lower() != chosen.value:
            raise ConfigurationError(
                f"the latest schema of {subject} is {found.schema.type}, but decode.{side} is {chosen}.",
                action=f"Set decode.{side}={found.schema.type.value.lower()}.",
            )
        ids[topic] = found.id
    return SideReader(side, chosen, access, ids)


def column_of(reader: SideReader) -> TypedColumn:
    """Return the column for one side of the records of all topics.

    Raises:
        ConfigurationError: topics differ.
        SchemaFormatError: a schema has no column.
    """
    found: tuple[str, TypedColumn] | None = None
    make: Callable[[str], TypedColumn] = lambda topic: SideCodec(reader, topic).column  # noqa: E731
    by_id: dict[int, TypedColumn] = {}
    for topic, number in reader.ids.items():
        column = by_id.get(number) or by_id.setdefault(number, make(topic))
        if found is None:
            found = topic, column
        elif column.kind != found[1].kind:
            raise ConfigurationError(
                f"the {reader.side}s of {found[0]} and {topic} have different schemas, so one transform cannot decode "
                "both.",
                action="Use a separate transform for each topic, with `topics`.",
            )
    assert found is not None, "a reader has topics"
    return found[1]
