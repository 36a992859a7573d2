"""Protobuf records as messages and as JSON, by the schemas of a registry.

This module does not compile `.proto` text. Registries do: with the format `serialized`, they return the compiled file
descriptor (Confluent's, Karapace, Redpanda since 25.2), which Confluent's own Python client requests as well.

JSON is ProtoJSON, with field names as in the schema. Fields that the schema does not know stay in a message, and are
rejected where JSON would lose them.
"""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.imports import read_imports
from mirror_lib.features.transforms.schemas.model import RegisteredSchema, Schema, SchemaType
from mirror_lib.features.transforms.schemas.prepared import ParsedSchema, SchemaCodec, schema_of_type
from mirror_lib.features.transforms.schemas.wire import frame_bytes, protobuf_frame
from mirror_lib.outside_limits import SCHEMA_IMPORT_LEVELS

#: Registries' name for the file of a schema; an import of this name would be the file itself.
_OWN_FILE = "default"
#: Imports that contain only options, which reading a message does not need (Confluent's `meta.proto`).
_OPTIONS_ONLY = frozenset({"confluent/meta.proto"})


class DescriptorSource(Protocol):
    """A source of compiled schemas, such as a registry."""

    def descriptor(self, schema_id: int) -> Schema:
        """The schema of an id, with a file descriptor in base64 as its text."""
        ...

    def version(self, subject: str, version: int, *, serialized: bool = False) -> RegisteredSchema:
        """A version of a subject, likewise when `serialized`."""
        ...


class ProtobufSchema(ParsedSchema):
    """A linked schema: converts payloads, without their frame, to messages and back. Thread-safe."""

    format = "Protobuf"

    def __init__(
        self, descriptor: str, imported: Mapping[str, str] | None = None, *, label: str = "the schema"
    ) -> None:
        """Link the schema with its imports.

        Args:
            descriptor: a `FileDescriptorProto` in base64.
            imported: likewise, by file name, of all direct and indirect imports. Imports that are part of Protobuf may
                be missing.
            label: its name in errors.

        Raises:
            SchemaFormatError: it is not a file descriptor, or an import is missing.
        """
        super().__init__(label)
        self._pool = DescriptorPool()
        try:
            self._file = _file(_OWN_FILE, descriptor)
            _Linking(self._pool, imported or {}).add(self._file)
        except (DecodeError, binascii.Error, TypeError, KeyError, ValueError) as error:
            raise self._unusable(error) from error

    def message_class(self, message_indexes: Sequence[int] = (0,)) -> type[Message]:
        """The class of one of the schema's message types.

        Args:
            message_indexes: as in a frame. Entries of maps count, as they do for serializers.

        Raises:
            SchemaFormatError: the schema has no such message type.
        """
        names: list[str] = [self._file.package] if self._file.package else []
        types: Sequence[DescriptorProto] = self._file.message_type
        for index in message_indexes:
            if not 0 <= index < len(types):
                raise SchemaFormatError(
                    f"{self._label} has no message type {list(message_indexes)}.",
                    action="Check that the record's schema id belongs to this registry.",
                )
            names.append(types[index].name)
            types = types[index].nested_type
        found: type[Message] = message_factory.GetMessageClass(self._pool.FindMessageTypeByName(".".join(names)))
        return found

    def decode(self, payload: bytes, message_indexes: Sequence[int] = (0,)) -> Message:
        """The message of a payload.

        Raises:
            SchemaFormatError: the bytes do not match the schema.
        """
        message = self.message_class(message_indexes)()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            raise self._unreadable(payload, error) from error
        return message

    def to_json(self, message: Message) -> Any:
        """A message as ProtoJSON.

        Raises:
            SchemaFormatError: it has fields that the schema does not know, or values that JSON cannot represent.
        """
        if any(True for _ in _unknown_fields(message)):
            raise SchemaFormatError(
                f"a record has fields that are not in {self._label}; its JSON would lose them.",
                action="Check that its schema id belongs to this registry, or change the message instead of its JSON.",
            )
        try:
            return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self._pool)
        except (json_format.Error, TypeError, ValueError) as error:
            raise self._misfit(error) from error

    def from_json(self, value: Any, message_indexes: Sequence[int] = (0,)) -> Message:
        """The inverse of `to_json`.

        Raises:
            SchemaFormatError: the input is not ProtoJSON of the message type.
        """
        message = self.message_class(message_indexes)()
        try:
            if not isinstance(value, dict):
                raise TypeError(f"{value!r} is not a JSON object")
            json_format.ParseDict(value, message, descriptor_pool=self._pool)
        except (json_format.Error, TypeError, ValueError, AttributeError) as error:
            raise self._misfit(error) from error
        return message

    def encode(self, message: Message) -> bytes:
        """The payload of a message.

        Raises:
            SchemaFormatError: a required field is missing.
        """
        try:
            payload: bytes = message.SerializeToString()
        except EncodeError as error:
            raise self._misfit(error) from error
        return payload


class ProtobufCodec(SchemaCodec[ProtobufSchema]):
    """Keys or values in Protobuf."""

    def __init__(self, source: DescriptorSource) -> None:
        super().__init__()
        self._source = source

    def decode(self, framed: bytes) -> Message:
        """The message after the frame."""
        return self._read(framed)[1]

    def encode(self, number: int, message: Message, message_indexes: Sequence[int] = (0,)) -> bytes:
        """A message by the schema of an id, with the frame."""
        return frame_bytes(number, message_indexes) + self.schema(number).encode(message)

    def to_json(self, framed: bytes) -> Any:
        """The message after the frame as ProtoJSON."""
        schema, message = self._read(framed)
        return schema.to_json(message)

    def from_json(self, number: int, value: Any, message_indexes: Sequence[int] = (0,)) -> bytes:
        """The inverse of `to_json`, by the schema of an id."""
        message = self.schema(number).from_json(value, message_indexes)
        return self.encode(number, message, message_indexes)

    def _read(self, framed: bytes) -> tuple[ProtobufSchema, Message]:
        frame = protobuf_frame(framed)
        if frame is None or not isinstance(frame.schema, int):
            raise SchemaFormatError(
                f"a record of {len(framed)} bytes does not start with a schema id and message indexes.",
                action="Check that its producer uses Confluent's serializer, with the schema id in the payload.",
            )
        schema = self.schema(frame.schema)
        return schema, schema.decode(framed[frame.length :], frame.message_indexes)

    def _parse(self, number: int) -> ProtobufSchema:
        schema = schema_of_type(self._source.descriptor(number), number, SchemaType.PROTOBUF)
        label = f"the schema with the id {number}"
        imported = read_imports(
            schema, lambda each: self._source.version(each.subject, each.version, serialized=True).schema, label=label
        )
        texts = {reference.name: each.text for reference, each in imported.items()}
        return ProtobufSchema(schema.text, texts, label=label)


class _Linking:
    """Adds the files of one schema to a pool, each after its imports."""

    def __init__(self, pool: DescriptorPool, imported: Mapping[str, str]) -> None:
        self._pool = pool
        self._imported = imported
        self._added: set[str] = set()

    def add(self, file: FileDescriptorProto, level: int = 0) -> None:
        """Add a file.

        Raises:
            KeyError: an import is missing.
            ValueError: files import one another over too many levels.
        """
        if level > SCHEMA_IMPORT_LEVELS:
            raise ValueError(f"its files import one another over more than {SCHEMA_IMPORT_LEVELS} levels")
        self._added.add(file.name)
        needed = [name for name in file.dependency if name not in _OPTIONS_ONLY]
        for name in needed:
            if name not in self._added:
                self.add(self._find(name), level + 1)
        if len(needed) < len(file.dependency):
            public = [file.dependency[place] for place in file.public_dependency]
            trimmed = FileDescriptorProto()
            trimmed.CopyFrom(file)
            trimmed.ClearField("weak_dependency")
            trimmed.dependency[:] = needed
            trimmed.public_dependency[:] = [needed.index(name) for name in public if name in needed]
            file = trimmed
        self._pool.AddSerializedFile(file.SerializeToString())

    def _find(self, name: str) -> FileDescriptorProto:
        if name in self._imported:
            return _file(name, self._imported[name])
        if name == "confluent/type/decimal.proto":
            return _decimal(name)
        found = FileDescriptorProto()
        try:
            if not name.startswith("google/"):
                raise ModuleNotFoundError
            module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ModuleNotFoundError:
            raise KeyError(f"the import {name} is not in its references") from None
        module.DESCRIPTOR.CopyToProto(found)
        return found


def _file(name: str, descriptor: str) -> FileDescriptorProto:
    file = FileDescriptorProto()
    file.ParseFromString(base64.b64decode(descriptor, validate=True))
    file.name = name
    return file


def _decimal(name: str) -> FileDescriptorProto:
    """`confluent.type.Decimal`, which is built into Confluent's registry."""
    kinds = FieldDescriptorProto
    file = FileDescriptorProto(name=name, package="confluent.type", syntax="proto3")
    message = file.message_type.add(name="Decimal")
    for number, (field, kind) in enumerate(
        (("value", kinds.TYPE_BYTES), ("precision", kinds.TYPE_UINT32), ("scale", kinds.TYPE_INT32)), start=1
    ):
        message.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    return file


def _unknown_fields(message: Message) -> Iterator[None]:
    """Yield once for each field, at any depth, that the schema does not know."""
    for _ in UnknownFieldSet(message):
        yield None
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            inner = value.values() if descriptor.message_type.fields_by_name["value"].message_type is not None else ()
        else:
            inner = (value,) if isinstance(value, Message) else value
        for each in inner:
            yield from _unknown_fields(each)
