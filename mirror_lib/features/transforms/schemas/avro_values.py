"""Checks if Python values match an Avro schema, and selects the branch of a union for a value.

fastavro's own check is not used: it accepts a text as a list of letters and rejects named enums, and its writer alone
writes a number that is too large for an int.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mirror_lib.features.transforms.schemas import logical_types
from mirror_lib.features.transforms.schemas.avro_types import NAMED, RECORDS, kind_of, resolve

_BOUNDS = {"int": 2**31, "long": 2**63}
FLOATS = frozenset({"float", "double"})
BYTES = frozenset({"bytes", "fixed"})
_ENDLESS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LARGEST_FLOAT = 3.4028235677973366e38


class AvroValues:
    """Values by the named types of one schema, by full name."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named

    def explicit(self, value: Any, schema: Any) -> Any:
        """A value as fastavro writes it without guessing: every value of a union with the name of its type.

        Missing fields get their default.

        Raises:
            ValueError: the value does not match the schema.
        """
        schema = self.definition(schema)
        kind = kind_of(schema)
        if kind == "union":
            branch, inner = self.branch_of(value, schema)
            return self.label(branch), self.explicit(inner, branch)
        self.check(value, schema)
        if kind == "array":
            return [self.explicit(each, schema["items"]) for each in value]
        if kind == "map":
            return {key: self.explicit(each, schema["values"]) for key, each in value.items()}
        if kind in RECORDS:
            return {field["name"]: self._explicit_field(value, field) for field in schema["fields"]}
        return value

    def definition(self, schema: Any) -> Any:
        """The definition of a named type; anything else unchanged."""
        return resolve(schema, self._named)

    def is_named(self, schema: Any) -> bool:
        """True if a type is a named one."""
        return kind_of(self.definition(schema)) in NAMED

    def label(self, branch: Any) -> str:
        """The name of a branch of a union: the full name, or the type."""
        definition = self.definition(branch)
        return str(definition["name"]) if kind_of(definition) in NAMED else kind_of(definition)

    def branch_of(self, value: Any, union: Sequence[Any]) -> tuple[Any, Any]:
        """The branch of a union that a value belongs to, and the value itself.

        Raises:
            ValueError: it belongs to no branch.
        """
        if isinstance(value, tuple) and len(value) == 2:
            for branch in union:
                if self.label(branch) == value[0]:
                    return branch, value[1]
        fitting = [branch for branch in union if self._fits(value, self.definition(branch))]
        if not fitting:
            raise ValueError(f"{value!r} does not match any type of the union")
        if kind_of(fitting[0]) == "float":
            # A Python float is a double.
            return next((branch for branch in fitting if kind_of(branch) == "double"), fitting[0]), value
        return fitting[0], value

    def check(self, value: Any, schema: Any) -> None:
        """Raise if a value is not of a type; items of lists, maps and records are not checked.

        Raises:
            ValueError: the value is not of the type.
        """
        if not self._fits(value, schema):
            raise ValueError(f"{value!r} is not a valid {self.label(schema)}")

    def _explicit_field(self, record: Mapping[str, Any], field: Mapping[str, Any]) -> Any:
        if field["name"] in record:
            return self.explicit(record[field["name"]], field["type"])
        return self.default_of(field)

    def default_of(self, field: Mapping[str, Any]) -> Any:
        """The default of a record's field, every value of a union with the name of its type.

        Raises:
            KeyError: the field has no default.
            ValueError: the default does not match the field's type.
        """
        return self._default(field["default"], field["type"])

    def _default(self, value: Any, schema: Any) -> Any:
        """A default in a schema's text; for a union it is of the first type (Avro 1.12, "Complex Types")."""
        schema = self.definition(schema)
        kind = kind_of(schema)
        if kind == "union":
            return self.label(schema[0]), self._default(value, schema[0])
        if kind == "array":
            return [self._default(each, schema["items"]) for each in value]
        if kind == "map":
            return {key: self._default(each, schema["values"]) for key, each in value.items()}
        if kind in RECORDS:
            return {
                field["name"]: self._default(value.get(field["name"], field.get("default")), field["type"])
                for field in schema["fields"]
            }
        found = scalar_from_json(value, schema)
        self.check(found, schema)
        return found

    def _fits(self, value: Any, schema: Any) -> bool:
        kind, logical = kind_of(schema), logical_types.of(schema)
        if logical is not None and isinstance(value, logical.python):
            return True
        match kind:
            case "null":
                return value is None
            case "boolean":
                return isinstance(value, bool)
            case "int" | "long":
                return (
                    isinstance(value, int) and not isinstance(value, bool) and -_BOUNDS[kind] <= value < _BOUNDS[kind]
                )
            case "float":
                return _is_number(value) and (abs(value) < _LARGEST_FLOAT or not math.isfinite(value))
            case "double":
                return _is_number(value)
            case "string":
                return isinstance(value, str)
            case "bytes":
                return isinstance(value, bytes)
            case "fixed":
                return isinstance(value, bytes) and len(value) == schema["size"]
            case "enum":
                return isinstance(value, str) and value in schema["symbols"]
            case "array":
                return isinstance(value, list)
            case "map":
                return isinstance(value, dict) and all(isinstance(key, str) for key in value)
            case _:
                return isinstance(value, dict) and _has_fields(value, schema["fields"])


def scalar_from_json(value: Any, schema: Any) -> Any:
    """A value that is not a list, map or record, from Avro's JSON encoding; unchanged if it cannot be one.

    Raises:
        ValueError: bytes contain characters above 255.
    """
    kind = kind_of(schema)
    if kind in BYTES and isinstance(value, str):
        value = value.encode("latin-1")
    elif kind in FLOATS:
        value = float(value) if _is_number(value) else _ENDLESS.get(value, value) if isinstance(value, str) else value
    logical = logical_types.of(schema)
    return value if logical is None else logical_types.to_python(logical, value, schema)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_fields(record: Mapping[str, Any], fields: Sequence[Mapping[str, Any]]) -> bool:
    """True if it has all fields without a default, and no unknown ones."""
    found = 0
    for field in fields:
        if field["name"] in record:
            found += 1
        elif "default" not in field:
            return False
    return found == len(record)
