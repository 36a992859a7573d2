"""Avro schemas as trees of plain values: prepared for fastavro, and searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mirror_lib.features.transforms.schemas import logical_types

#: Every schema is wrapped into a record of this name with one field: a record's bytes are those of its fields, and
#: fastavro keeps only records as it has parsed them once.
ROOT, VALUE = "MirrorRootOfAnySchema", "value"
NAMED = frozenset({"record", "error", "enum", "fixed"})
RECORDS = frozenset({"record", "error"})


def prepare(schema: Any, *, defaults: bool = True) -> Any:
    """A copy of a schema's JSON that fastavro can parse, with the project's names of logical types.

    Args:
        schema: of any form.
        defaults: fields keep their defaults; old registries contain invalid ones, on which fastavro fails.
    """
    if isinstance(schema, list):
        return [prepare(each, defaults=defaults) for each in schema]
    if not isinstance(schema, dict) or "type" not in schema:
        return schema
    kind = schema["type"]
    if not isinstance(kind, str):
        # `{"type": {"type": "string"}}` is `{"type": "string"}`, as in Java.
        return prepare(kind, defaults=defaults)
    made = dict(schema)
    own = logical_types.own_name(schema)
    made.pop("logicalType", None)
    if own is not None:
        made["logicalType"] = own
    for inner in ("items", "values"):
        if inner in made:
            made[inner] = prepare(made[inner], defaults=defaults)
    if kind in RECORDS:
        made["fields"] = [_prepared_field(each, defaults) for each in made.get("fields", ())]
    return made


def _prepared_field(field: Mapping[str, Any], defaults: bool) -> dict[str, Any]:
    made = {**field, "type": prepare(field["type"], defaults=defaults)}
    if not defaults:
        made.pop("default", None)
    return made


def wrap(schema: Any) -> dict[str, Any]:
    """A record with a single field of the schema."""
    return {"type": "record", "name": ROOT, "fields": [{"name": VALUE, "type": schema}]}


def kind_of(schema: Any) -> str:
    """`union`, one of Avro's types, or the name of a type that is defined elsewhere."""
    if isinstance(schema, list):
        return "union"
    return str(schema["type"]) if isinstance(schema, Mapping) else str(schema)


def resolve(schema: Any, named: Mapping[str, Any]) -> Any:
    """The definition of a named type; anything else unchanged."""
    return named.get(schema, schema) if isinstance(schema, str) else schema


def needs_names(union: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """True if a value of a union's single named type could be mistaken for one of another branch."""
    kinds = [kind_of(resolve(each, named)) for each in union]
    taken_for = {"record": "map", "error": "map", "enum": "string", "fixed": "bytes"}
    return any(taken_for.get(kind) in kinds for kind in kinds)


def inner_types(schema: Any) -> Iterator[Any]:
    """The types that a type directly contains, without following names."""
    if isinstance(schema, list):
        yield from schema
    elif isinstance(schema, Mapping):
        yield from (schema[inner] for inner in ("items", "values") if inner in schema)
        yield from (field["type"] for field in schema.get("fields", ()))


def is_recursive(named: Mapping[str, Any]) -> bool:
    """True if a named type contains itself, directly or not."""
    holds = {name: _names_in(definition, named) for name, definition in named.items()}
    for name, found in holds.items():
        reached, waiting = set[str](), list(found)
        while waiting:
            each = waiting.pop()
            if each == name:
                return True
            if each not in reached:
                reached.add(each)
                waiting += holds[each]
    return False


def _names_in(schema: Any, named: Mapping[str, Any]) -> set[str]:
    found, waiting = set[str](), list(inner_types(schema))
    while waiting:
        each = waiting.pop()
        name = each.get("name") if isinstance(each, Mapping) else each
        if isinstance(name, str) and name in named:
            found.add(name)
        waiting += inner_types(each)
    return found


def has_weightless_items(schema: Any, named: Mapping[str, Any]) -> bool:
    """True if there is a list of values that take no bytes: a few bytes can then encode any number of them."""
    if (
        isinstance(schema, Mapping)
        and schema["type"] == "array"
        and _is_weightless(schema["items"], named, frozenset())
    ):
        return True
    return any(has_weightless_items(each, named) for each in inner_types(schema))


def _is_weightless(schema: Any, named: Mapping[str, Any], inside: frozenset[str]) -> bool:
    schema = resolve(schema, named)
    kind = kind_of(schema)
    if kind in RECORDS and schema["name"] not in inside:
        inside |= {schema["name"]}
        return all(_is_weightless(field["type"], named, inside) for field in schema["fields"])
    return kind == "null" or (kind == "fixed" and schema["size"] == 0)


def unions(schema: Any) -> Iterator[Sequence[Any]]:
    """All unions in a parsed schema, without following names."""
    if isinstance(schema, list):
        yield schema
    for each in inner_types(schema):
        yield from unions(each)
