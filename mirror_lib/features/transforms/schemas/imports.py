"""Schemas that a schema imports, directly or not, within limits: a registry may name any number, or a cycle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mirror_lib.features.transforms.schemas.errors import SchemaRegistryError, SchemaRegistryUnreachableError
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference
from mirror_lib.outside_limits import (
    SCHEMA_IMPORT_LEVELS,
    SCHEMA_IMPORT_SECONDS,
    SCHEMA_IMPORTS,
    SCHEMA_TEXT_CHARACTERS,
)

_ACTION = "Check this schema and its references in the registry."


class _Level(NamedTuple):
    """A schema whose imports are being read."""

    #: None for the schema itself.
    reference: SchemaReference | None
    schema: Schema
    waiting: Iterator[SchemaReference]


def read_imports(
    schema: Schema, read: Callable[[SchemaReference], Schema], *, label: str
) -> dict[SchemaReference, Schema]:
    """Return all imports of a schema; each comes after the ones that it needs.

    Args:
        read: requests an import from the registry.
        label: the schema's name in errors.

    Raises:
        SchemaRegistryError: the imports exceed a limit, or form a cycle; or from `read`.
    """
    found: dict[SchemaReference, Schema] = {}
    #: Levels of imports below each schema of `found`.
    levels: dict[SchemaReference, int] = {}
    named = set(schema.references)
    size = len(schema.text)
    deadline = time.monotonic() + SCHEMA_IMPORT_SECONDS
    path = [_Level(None, schema, iter(schema.references))]
    while path:
        if len(named) > SCHEMA_IMPORTS:
            raise _too_much(label, f"more than {SCHEMA_IMPORTS:,} schemas")
        if len(path) > SCHEMA_IMPORT_LEVELS + 1:
            raise _too_much(label, f"schemas over more than {SCHEMA_IMPORT_LEVELS} levels")
        current = path[-1]
        reference = next(current.waiting, None)
        if reference is None:
            path.pop()
            below = 1 + max((levels[each] for each in current.schema.references), default=-1)
            if below > SCHEMA_IMPORT_LEVELS:
                raise _too_much(label, f"schemas over more than {SCHEMA_IMPORT_LEVELS} levels")
            if current.reference is not None:
                found[current.reference], levels[current.reference] = current.schema, below
        elif reference not in found:
            if any(each.reference is not None and each.reference.place == reference.place for each in path):
                raise _too_much(label, f"{reference.place}, which imports itself")
            if time.monotonic() > deadline:
                raise SchemaRegistryUnreachableError(
                    f"the imports of {label} were not complete within {SCHEMA_IMPORT_SECONDS:g} s.",
                    action="Check the registry's load; the next attempt starts again.",
                )
            imported = read(reference)
            named.update(imported.references)
            size += len(imported.text)
            if size > SCHEMA_TEXT_CHARACTERS:
                raise _too_much(label, f"more than {SCHEMA_TEXT_CHARACTERS:,} characters")
            path.append(_Level(reference, imported, iter(imported.references)))
    return found


def _too_much(label: str, what: str) -> SchemaRegistryError:
    return SchemaRegistryError(f"{label} imports {what}.", action=_ACTION)
