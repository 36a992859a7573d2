"""Convert Python values to Arrow arrays without `pyarrow.array`, which loads pandas and costs a new worker a second."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

_LARGEST_CONTENT = 2**31 - 1


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array of a type.

    Args:
        values: None for null. Numbers of a timestamp's unit since 1970 for timestamps, days for dates, dicts for
            structs (missing fields are null), dicts or pairs for maps.
        kind: composed of booleans, numbers, decimals, texts, bytes, dates, timestamps, lists, maps and structs.

    Raises:
        ValueError: a value does not fit, or they are too many for one array.
        TypeError: the type is not supported.
    """
    if pa.types.is_string(kind):
        return _content([None if value is None else value.encode() for value in values], kind)
    if pa.types.is_binary(kind):
        return _content(values, kind)
    if pa.types.is_struct(kind):
        members = [kind.field(number) for number in range(kind.num_fields)]
        children = [
            array_of([None if value is None else value.get(member.name) for value in values], member.type)
            for member in members
        ]
        return pa.Array.from_buffers(kind, len(values), [_validity(values)], children=children)
    if pa.types.is_map(kind):
        entries = [None if value is None else _pairs(value) for value in values]
        pairs = [pair for each in entries if each is not None for pair in each]
        fields = kind.key_field, kind.item_field
        children = [array_of([pair[place] for pair in pairs], each.type) for place, each in enumerate(fields)]
        inner = pa.Array.from_buffers(pa.struct(list(fields)), len(pairs), [None], children=children)
        return pa.Array.from_buffers(kind, len(values), [_validity(values), _edges(entries)], children=[inner])
    if pa.types.is_list(kind):
        inner = array_of([each for value in values if value is not None for each in value], kind.value_type)
        return pa.Array.from_buffers(kind, len(values), [_validity(values), _edges(values)], children=[inner])
    return _flat(values, kind)


def _pairs(value: Any) -> Sequence[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else value


def _flat(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of values of a fixed width."""
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_boolean(kind):
        bits = np.array([bool(value) for value in values], dtype=np.bool_)
        return pa.Array.from_buffers(kind, len(values), [_validity(values), _bits(bits)])
    if pa.types.is_decimal128(kind):
        width, scale = kind.byte_width, kind.scale
        content = b"".join(_unscale(value, scale).to_bytes(width, "little", signed=True) for value in values)
        return pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(content)])
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        plain = "i"
    elif pa.types.is_integer(kind):
        plain = "i" if pa.types.is_signed_integer(kind) else "u"
    elif pa.types.is_floating(kind):
        plain = "f"
    else:
        raise TypeError(f"the type {kind} is not supported")
    try:
        numbers = np.array([0 if value is None else value for value in values], dtype=f"{plain}{kind.bit_width // 8}")
    except OverflowError as error:
        raise ValueError(f"a number does not fit into {kind}") from error
    return pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(numbers)])


def _unscale(value: Decimal | None, scale: int) -> int:
    if value is None:
        return 0
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent + scale < 0:
        raise ValueError(f"{value} cannot be written with {scale} decimal places")
    number = int("".join(map(str, digits)) or "0") * int(10 ** (exponent + scale))
    return -number if sign else number


def _content(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    content = b"".join([value for value in values if value is not None])
    if len(content) > _LARGEST_CONTENT:
        raise ValueError(f"{len(content)} bytes are too large for one array")
    return pa.Array.from_buffers(kind, len(values), [_validity(values), _edges(values), pa.py_buffer(content)])


def _edges(values: Sequence[Any]) -> pa.Buffer:
    """Return where each value begins, and where the last one ends."""
    lengths = (0 if value is None else len(value) for value in values)
    return pa.py_buffer(np.fromiter(accumulate(lengths, initial=0), dtype=np.int32, count=len(values) + 1))


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    if None not in values:
        return None
    return _bits(np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values)))


def _bits(valid: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
