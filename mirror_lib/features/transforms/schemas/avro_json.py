"""Avro's JSON encoding (Avro 1.12, "JSON Encoding"): values as JSON that can be decoded by the schema.

As `kafka-avro-console-consumer` prints it: a value of a union is `{"type": value}` unless it is null, bytes are text of
the characters 0 to 255, and logical types are their underlying values. Numbers that JSON lacks are the texts `NaN`,
`Infinity` and `-Infinity`. fastavro's own encoder is not used: it encodes recursive types as null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mirror_lib.features.transforms.schemas import logical_types
from mirror_lib.features.transforms.schemas.avro_types import RECORDS, kind_of
from mirror_lib.features.transforms.schemas.avro_values import BYTES, FLOATS, AvroValues, scalar_from_json


class AvroJson:
    """The JSON encoding by one schema."""

    def __init__(self, schema: Any, values: AvroValues, *, all_names: bool) -> None:
        """Store schema and types.

        Args:
            schema: as parsed.
            values: by its named types.
            all_names: decode every value of a union's named type as a pair with its name, not only if there are several
                named types.
        """
        self._schema = schema
        self._values = values
        self._all_names = all_names

    def to_json(self, value: Any) -> Any:
        """A value in the form that `json.dumps` accepts.

        Raises:
            ValueError: the value does not match the schema.
        """
        return self._out(value, self._schema)

    def from_json(self, value: Any) -> Any:
        """The inverse, for the result of `json.loads`.

        Raises:
            ValueError: the input is not the JSON encoding by this schema.
        """
        return self._in(value, self._schema)

    def _out(self, value: Any, schema: Any) -> Any:
        schema = self._values.definition(schema)
        kind = kind_of(schema)
        if kind == "union":
            branch, value = self._values.branch_of(value, schema)
            return None if kind_of(branch) == "null" else {self._values.label(branch): self._out(value, branch)}
        self._values.check(value, schema)
        if kind == "array":
            return [self._out(each, schema["items"]) for each in value]
        if kind == "map":
            return {key: self._out(each, schema["values"]) for key, each in value.items()}
        if kind in RECORDS:
            return {field["name"]: self._out(_field(value, field), field["type"]) for field in schema["fields"]}
        logical = logical_types.of(schema)
        if logical is not None:
            value = logical_types.to_written(logical, value, schema)
        if kind in BYTES:
            return value.decode("latin-1")
        if kind in FLOATS:
            return float(value) if math.isfinite(value) else _endless(value)
        return value

    def _in(self, value: Any, schema: Any) -> Any:
        schema = self._values.definition(schema)
        kind = kind_of(schema)
        if kind == "union":
            return self._union_in(value, schema)
        if kind == "array" and isinstance(value, list):
            return [self._in(each, schema["items"]) for each in value]
        if kind == "map" and isinstance(value, dict):
            return {key: self._in(each, schema["values"]) for key, each in value.items()}
        if kind in RECORDS and isinstance(value, dict):
            self._values.check(value, schema)
            return {field["name"]: self._in(_field(value, field), field["type"]) for field in schema["fields"]}
        found = scalar_from_json(value, schema)
        self._values.check(found, schema)
        return found

    def _union_in(self, value: Any, union: Sequence[Any]) -> Any:
        if value is None:
            if "null" not in map(kind_of, union):
                raise ValueError("null is not a type of the union")
            return None
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"{value!r} is not a type of the union")
        ((label, inner),) = value.items()
        for branch in union:
            if self._values.label(branch) == label:
                found = self._in(inner, branch)
                return (label, found) if self._values.is_named(branch) and self._are_pairs(union) else found
        raise ValueError(f"{label} is not a type of the union")

    def _are_pairs(self, union: Sequence[Any]) -> bool:
        """True if values of the union's named types are decoded as pairs of name and value."""
        return self._all_names or sum(map(self._values.is_named, union)) > 1


def _field(record: Mapping[str, Any], field: Mapping[str, Any]) -> Any:
    if field["name"] not in record:
        raise ValueError(f"the field {field['name']} is missing")
    return record[field["name"]]


def _endless(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
