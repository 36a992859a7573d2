"""Avro records as Python values and as JSON, by the schemas of a registry.

Records become dicts, and logical types Python's types (see `logical_types`). A value of a union with several named
types, or whose named type could be mistaken for another type of it, is a pair of the type's full name and the value, so
that it is written back unchanged. A number in a union of several numeric types may be written back as another one of
these types with the same value.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any, Protocol

import fastavro
from fastavro import _read_py as plain_reader

from mirror_lib.features.transforms.schemas import avro_types
from mirror_lib.features.transforms.schemas.avro_json import AvroJson
from mirror_lib.features.transforms.schemas.avro_values import AvroValues
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.imports import read_imports
from mirror_lib.features.transforms.schemas.model import RegisteredSchema, Schema, SchemaType
from mirror_lib.features.transforms.schemas.prepared import ParsedSchema, SchemaCodec, schema_of_type
from mirror_lib.features.transforms.schemas.wire import ID_FRAME_BYTES, frame_bytes, schema_id
from mirror_lib.outside_json import parse_json
from mirror_lib.outside_limits import SCHEMA_JSON_LEVELS

#: A payload up to this size cannot nest a value so deeply that reading it overflows a thread's stack.
_HARMLESS_BYTES = 512


class SchemaSource(Protocol):
    """A source of schemas, such as a registry."""

    def schema(self, schema_id: int) -> Schema:
        """The schema of an id."""
        ...

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """A version of a subject."""
        ...


#: Numbers of five bytes and more, or text that looks like one.
_LONG_NUMBER = re.compile(rb"[\x80-\xff]{4}")


class AvroSchema(ParsedSchema):
    """A parsed schema: converts payloads, without their frame, to values and back. Thread-safe."""

    format = "Avro"

    def __init__(self, text: str, imported: Mapping[str, str] | None = None, *, label: str = "the schema") -> None:
        """Parse it.

        Args:
            text: of the schema.
            imported: texts of its direct and indirect imports, by any name; each comes after the ones that it needs.
            label: its name in errors.

        Raises:
            SchemaFormatError: it is not an Avro schema.
        """
        super().__init__(label)
        try:
            texts = [_load(each) for each in (*(imported or {}).values(), text)]
            try:
                named, self._parsed = _parse(texts, defaults=True)
            except Exception:
                # Any error: it may be in a default, so parse again without defaults.
                named, self._parsed = _parse(texts, defaults=False)
        except Exception as error:
            raise self._unusable(error) from error
        self._schema = self._parsed["fields"][0]["type"]
        definitions = [self._schema, *named.values()]
        self._all_names = any(
            avro_types.needs_names(union, named) for each in definitions for union in avro_types.unions(each)
        )
        if any(avro_types.has_weightless_items(each, named) for each in definitions):
            raise SchemaFormatError(
                f"{label} has an array whose elements take no bytes: a damaged record may claim any number of them.",
                action="Copy these records unchanged, without decoding them.",
            )
        self._is_recursive = avro_types.is_recursive(named)
        self._values = AvroValues(named)
        self._json = AvroJson(self._schema, self._values, all_names=self._all_names)

    @property
    def definition(self) -> Any:
        """The schema as parsed: with full names, and the project's names of logical types."""
        return self._schema

    @property
    def values(self) -> AvroValues:
        """The values of its named types."""
        return self._values

    def decode(self, payload: bytes) -> Any:
        """The value of a payload.

        Raises:
            SchemaFormatError: the bytes do not match the schema.
        """
        stream = io.BytesIO(payload)
        # fastavro's compiled reader crashes the process if a value is nested too deeply; its Python reader raises.
        nests_deeply = self._is_recursive and len(payload) > _HARMLESS_BYTES
        read = plain_reader.schemaless_reader if nests_deeply else fastavro.schemaless_reader
        try:
            record = read(
                stream,
                self._parsed,
                None,
                return_named_type=True,
                return_named_type_override=not self._all_names,
            )
        except Exception as error:
            raise self._unreadable(payload, error) from error
        left = len(payload) - stream.tell()
        if left:
            raise SchemaFormatError(
                f"a record of {len(payload)} bytes has {left} bytes after the end of {self._label}.",
                action="Check that its schema id belongs to this registry, and that its producer writes Avro.",
            )
        value = record[avro_types.VALUE]  # type: ignore[index, call-overload]
        if _LONG_NUMBER.search(payload):
            # fastavro reads an int of any size; Java's reader would drop the bits above 32.
            try:
                self._values.explicit(value, self._schema)
            except Exception as error:
                raise self._misfit(error) from error
        return value

    def encode(self, value: Any) -> bytes:
        """The payload of a value. Fields with a default may be missing.

        Raises:
            SchemaFormatError: the value does not match the schema, or cannot be written without loss.
        """
        stream = io.BytesIO()
        try:
            record = {avro_types.VALUE: self._values.explicit(value, self._schema)}
            fastavro.schemaless_writer(stream, self._parsed, record)
        except Exception as error:
            raise self._misfit(error) from error
        return stream.getvalue()

    def to_json(self, value: Any) -> Any:
        """A decoded value in Avro's JSON encoding (see `avro_json`).

        Raises:
            SchemaFormatError: the value does not match the schema.
        """
        try:
            return self._json.to_json(value)
        except (ValueError, OverflowError, RecursionError) as error:
            raise self._misfit(error) from error

    def from_json(self, value: Any) -> Any:
        """The inverse of `to_json`.

        Raises:
            SchemaFormatError: the input is not the JSON encoding of a value of the schema.
        """
        try:
            return self._json.from_json(value)
        except (ValueError, OverflowError, RecursionError) as error:
            raise self._misfit(error) from error


class AvroCodec(SchemaCodec[AvroSchema]):
    """Keys or values in Avro."""

    def __init__(self, source: SchemaSource) -> None:
        super().__init__()
        self._source = source

    def decode(self, framed: bytes) -> Any:
        """The value after the frame."""
        return self.schema(_id_of(framed)).decode(framed[ID_FRAME_BYTES:])

    def encode(self, number: int, value: Any) -> bytes:
        """A value by the schema of an id, with the frame."""
        return frame_bytes(number) + self.schema(number).encode(value)

    def to_json(self, framed: bytes) -> Any:
        """The value after the frame in Avro's JSON encoding."""
        schema = self.schema(_id_of(framed))
        return schema.to_json(schema.decode(framed[ID_FRAME_BYTES:]))

    def from_json(self, number: int, value: Any) -> bytes:
        """The inverse of `to_json`, by the schema of an id."""
        schema = self.schema(number)
        return frame_bytes(number) + schema.encode(schema.from_json(value))

    def _parse(self, number: int) -> AvroSchema:
        schema = schema_of_type(self._source.schema(number), number, SchemaType.AVRO)
        label = f"the schema with the id {number}"
        imported = read_imports(
            schema, lambda each: self._source.version(each.subject, each.version).schema, label=label
        )
        texts = {str(reference.place): each.text for reference, each in imported.items()}
        return AvroSchema(schema.text, texts, label=label)


def _id_of(framed: bytes) -> int:
    number = schema_id(framed)
    if number is None:
        raise SchemaFormatError(
            f"a record of {len(framed)} bytes does not start with a schema id.",
            action="Check that its producer uses one of Confluent's serializers, with the schema id in the payload.",
        )
    return number


def _parse(texts: list[Any], *, defaults: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The named types, and the last schema, wrapped into a record that fastavro keeps as parsed."""
    named: dict[str, Any] = {}
    *imported, own = (avro_types.prepare(each, defaults=defaults) for each in texts)
    for each in imported:
        # Not as the root: fastavro's mark of a parsed schema would stay in it.
        fastavro.parse_schema(avro_types.wrap(each), named)
        named.pop(avro_types.ROOT, None)
    parsed = fastavro.parse_schema(avro_types.wrap(own), named)
    assert isinstance(parsed, dict)
    return {name: each for name, each in named.items() if name != avro_types.ROOT}, parsed


def _load(text: str) -> Any:
    """A schema's JSON; Avro's primitive types may be written without quotes."""
    stripped = text.strip()
    return parse_json(stripped, levels=SCHEMA_JSON_LEVELS) if stripped[:1] in ("{", "[", '"') else stripped
