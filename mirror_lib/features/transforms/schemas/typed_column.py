"""A schema's values as an Arrow column: its type, and the conversion of one value in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa


class TypedColumn(NamedTuple):
    """Converts values of a schema to a column and back; null is None in both directions and is not converted."""

    kind: pa.DataType
    #: A decoded value as `array_of` accepts it: plain numbers, texts, bytes, lists and dicts.
    out: Callable[[Any], Any]
    #: The inverse, for the result of Arrow's `to_pylist`.
    back: Callable[[Any], Any]
    #: Names of the fields that a written value must have; empty unless it is a record.
    required: frozenset[str] = frozenset()


def optional(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, with None for None."""
    return lambda value: None if value is None else function(value)


def plain(kind: pa.DataType) -> TypedColumn:
    """A column whose values need no conversion."""
    return TypedColumn(kind, _same, _same)


def list_of(inner: TypedColumn) -> TypedColumn:
    """A column of lists."""
    out, back = optional(inner.out), optional(inner.back)
    return TypedColumn(
        pa.list_(pa.field("element", inner.kind)),
        lambda value: [out(each) for each in value],
        lambda value: [back(each) for each in value],
    )


def map_of(keys: TypedColumn, values: TypedColumn) -> TypedColumn:
    """A column of maps; Arrow returns them as pairs."""
    out, back = optional(values.out), optional(values.back)
    return TypedColumn(
        pa.map_(keys.kind, values.kind),
        lambda value: {keys.out(key): out(each) for key, each in value.items()},
        lambda value: {keys.back(key): back(each) for key, each in value},
    )


def _same(value: Any) -> Any:
    return value
