"""Convert bytes to values and back, like Connect's converters.

MM2 never decodes: its task returns keys and values as bytes, and a converter only writes them. Decoding with the same
converter gives transforms fields to work on; `chain` says when it is done.
"""

from __future__ import annotations

import base64

from mirror_lib.features.transforms.smt.converters.json_data import (
    schema_from_json,
    schema_to_json,
    value_from_json,
    value_to_json,
)
from mirror_lib.features.transforms.smt.converters.json_text import read_json, read_member, schemaless_json, write_json
from mirror_lib.features.transforms.smt.model import ConverterKind, ConverterSettings
from mirror_lib.features.transforms.smt.schema_cache import SchemaCache
from mirror_lib.features.transforms.smt.values.data import (
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    DataError,
    Schema,
    SchemaType,
    Value,
    class_name,
)
from mirror_lib.features.transforms.smt.values.java_strings import connect_text, java_text

# Attribute access on the enum class, done for every record here, takes five times as long.
_BYTES, _STRING, _JSON = ConverterKind.BYTES, ConverterKind.STRING, ConverterKind.JSON
_OPENING, _MIDDLE = '{"schema":', ',"payload":'
_MOST_KNOWN = 8
_NO_SCHEMA = b"null"
#: The text before the payload in usual envelopes, with its schema: records of a topic have few different ones.
_KNOWN: dict[ConverterSettings, tuple[tuple[str, Schema | None], ...]] = {}
#: The same as written here.
_WRITTEN: SchemaCache[bytes] = SchemaCache()
_NO_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields;'
    " for plain JSON set schemas.enable=false"
)


def decode(settings: ConverterSettings, data: bytes | None) -> tuple[Schema | None, Value]:
    """Return schema and value of a key or value (`Converter.toConnectData`).

    Raises:
        DataError: the bytes do not have the converter's format. Where Java would lose data, such as characters that
            are not UTF-8, that is an error too.
    """
    if settings.kind is _STRING:
        return OPTIONAL_STRING, None if data is None else _decoded_text(data)
    if settings.kind is not _JSON:
        return OPTIONAL_BYTES, data
    if data is None:
        return None, None
    if not settings.schemas_enable:
        return None, read_json(data)
    schema, payload = _read_envelope(settings, data)
    return schema, value_from_json(schema, payload, settings)


def _read_envelope(settings: ConverterSettings, data: bytes) -> tuple[Schema | None, Value]:
    """Return the schema, and the payload as written."""
    known = _KNOWN.get(settings, ())
    for before, schema in known:
        found = read_member(data, before)
        if found is not None and found[1] == "}":
            return schema, found[0]
    node = read_json(data)
    if not isinstance(node, dict) or set(node) != {"schema", "payload"}:
        raise DataError(_NO_ENVELOPE)
    schema = schema_from_json(node["schema"], settings)
    seen = _before_payload(data)
    if seen is not None:
        _KNOWN[settings] = ((seen, schema), *known[: _MOST_KNOWN - 1])
    return schema, node["payload"]


def _before_payload(data: bytes) -> str | None:
    """Return the text before the payload of an envelope that has its two members once, in order and without blanks."""
    schema = read_member(data, _OPENING)
    if schema is None or not schema[1].startswith(_MIDDLE):
        return None
    before = data.decode()[: -len(schema[1])] + _MIDDLE
    payload = read_member(data, before)
    return before if payload is not None and payload[1] == "}" else None


def encode(settings: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    """Return the bytes of a key, value or header (`Converter.fromConnectData`, `HeaderConverter.fromConnectHeader`).

    Raises:
        DataError: the converter has no bytes for such a value.
    """
    if settings.kind is _JSON:
        return _encoded_json(settings, schema, value)
    if settings.kind is _BYTES:
        return _checked_bytes(schema, value)
    if value is None:
        return None
    if isinstance(value, bytes) and settings.kind is not _STRING:
        # As in `connect_text`: the content of nearly all headers.
        return base64.b64encode(value)
    text = java_text(value) if settings.kind is _STRING else connect_text(value)
    # Like Java, which writes a question mark for a lone surrogate.
    return text.encode("utf-8", "replace")


def _encoded_json(settings: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    if schema is None and value is None:
        return None
    if schema is None and not settings.schemas_enable and (text := schemaless_json(value)) is not None:
        return text
    payload = value_to_json(schema, value, settings)
    if not settings.schemas_enable:
        return _text(payload)
    before = _NO_SCHEMA if schema is None else _WRITTEN.get(settings, schema, lambda: _schema_text(schema, settings))
    return b"".join((_OPENING.encode(), before, _MIDDLE.encode(), _text(payload), b"}"))


def _text(payload: Value) -> bytes:
    return schemaless_json(payload) or write_json(payload)


def _schema_text(schema: Schema, settings: ConverterSettings) -> bytes:
    return write_json(schema_to_json(schema, settings))


def _checked_bytes(schema: Schema | None, value: Value) -> bytes | None:
    if schema is not None and schema.type is not SchemaType.BYTES:
        raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
    if value is not None and not isinstance(value, bytes):
        raise DataError(f"ByteArrayConverter is not compatible with objects of type class {class_name(value)}")
    return value


def _decoded_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the text is not UTF-8: {error.reason} at byte {error.start}") from error
