"""A schema's values as a column of Arrow: its type, and the way there and back for one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa


class TypedColumn(NamedTuple):
    """How values of a schema stand in a column; null is None, both ways, and is not given to the functions."""

    kind: pa.DataType
    #: A decoded value as `array_of` takes it: plain numbers, texts, bytes, lists and dicts.
    out: Callable[[Any], Any]
    #: The inverse, for what Arrow's `to_pylist` gives.
    back: Callable[[Any], Any]
    #: Names of the fields that must be there when a value is written; empty unless it is a record.
    required: frozenset[str] = frozenset()


def optional(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, with None for None."""
    return lambda value: None if value is None else function(value)


def plain(kind: pa.DataType) -> TypedColumn:
    """A column whose values are what they are."""
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
    """A column of maps; Arrow gives them back as pairs."""
    out, back = optional(values.out), optional(values.back)
    return TypedColumn(
        pa.map_(keys.kind, values.kind),
        lambda value: {keys.out(key): out(each) for key, each in value.items()},
        lambda value: {keys.back(key): back(each) for key, each in value},
    )


def _same(value: Any) -> Any:
    return value
