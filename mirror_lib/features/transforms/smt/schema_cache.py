"""A cache of the schemas made by transforms and converters, like the `SchemaUpdateCache` of Connect's transforms.

The records of a topic have few schemas. A schema derived from one is made once, so that it is the same object for all
records, and schemas derived from it are found in the cache as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mirror_lib.features.transforms.smt.values.data import Schema

_Made = TypeVar("_Made")
_MOST = 64


class SchemaCache(Generic[_Made]):
    """Values made from schemas by a setting; both keys are compared by identity. Threads may share it."""

    def __init__(self) -> None:
        # The objects are kept, so that no new object gets the identity of a deleted one.
        self._made: dict[tuple[int, int], tuple[object, Schema, _Made]] = {}

    def get(self, setting: object, schema: Schema, make: Callable[[], _Made]) -> _Made:
        """Return the value made from a schema, or make it now; exceptions of `make` are not cached."""
        key = id(setting), id(schema)
        found = self._made.get(key)
        if found is not None:
            return found[2]
        made = make()
        if len(self._made) >= _MOST:
            self._made.clear()
        self._made[key] = setting, schema, made
        return made
