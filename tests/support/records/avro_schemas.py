"""Avro schemas, and values of them."""

from __future__ import annotations

import json
from datetime import UTC
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from mirror_lib.features.transforms.schemas.avro import AvroSchema


def schema(value: object) -> AvroSchema:
    """Of a schema's JSON."""
    return AvroSchema(json.dumps(value))


def record(name: str, **fields: object) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


def logical(kind: str, name: str, /, **more: object) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 3) -> tuple[Any, Any]:
    """A schema without ambiguous unions, and a value of it."""
    scalars: list[tuple[Any, st.SearchStrategy[Any]]] = [
        ("null", st.none()),
        ("boolean", st.booleans()),
        ("int", st.integers(-(2**31), 2**31 - 1)),
        ("long", st.integers(-(2**63), 2**63 - 1)),
        ("float", st.floats(width=32, allow_nan=False)),
        ("double", st.floats(allow_nan=False)),
        ("bytes", st.binary(max_size=8)),
        ("string", st.text(max_size=8)),
        (logical("long", "timestamp-micros"), st.datetimes(timezones=st.just(UTC))),
        (logical("long", "local-timestamp-micros"), st.datetimes()),
        (logical("int", "date"), st.dates()),
        (logical("long", "time-micros"), st.times()),
        (logical("string", "uuid"), st.uuids()),
        (
            logical("bytes", "decimal", precision=20, scale=5),
            st.integers(-(10**20) + 1, 10**20 - 1).map(lambda number: Decimal((int(number < 0), _digits(number), -5))),
        ),
    ]
    shape = draw(st.sampled_from(["scalar", "array", "map", "record", "optional"])) if depth else "scalar"
    if shape == "scalar":
        kind, values = draw(st.sampled_from(scalars))
        return kind, draw(values)
    kind, value = draw(typed_values(depth=depth - 1))
    if shape == "array" and kind != "null":
        return {"type": "array", "items": kind}, [value] * draw(st.integers(0, 2))
    if shape in ("map", "array"):
        return {"type": "map", "values": kind}, dict.fromkeys(draw(st.lists(st.text(max_size=3), max_size=2)), value)
    if shape == "record":
        return record(f"R{depth}", a=kind, b="int"), {"a": value, "b": 7}
    if isinstance(kind, list) or kind == "null":
        return kind, value
    return ["null", kind], draw(st.sampled_from([None, value]))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))
