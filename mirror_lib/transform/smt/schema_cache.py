"""Schemas that transforms and converters have made already, as the `SchemaUpdateCache` of Connect's transforms.

The records of a topic are of a few schemas. What is made of one is made once, so that it is the same object for all of
them, and what is made of that in turn is found again as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mirror_lib.transform.smt.values import Schema

_Made = TypeVar("_Made")
_MOST = 64


class SchemaCache(Generic[_Made]):
    """What was made of schemas by a setting; both are told apart by identity. Threads may share it."""

    def __init__(self) -> None:
        # The objects are kept, so that no other one gets the identity of one that is gone.
        self._made: dict[tuple[int, int], tuple[object, Schema, _Made]] = {}

    def get(self, setting: object, schema: Schema, make: Callable[[], _Made]) -> _Made:
        """What was made of a schema, or is made now; what `make` raises is not kept."""
        key = id(setting), id(schema)
        found = self._made.get(key)
        if found is not None:
            return found[2]
        made = make()
        if len(self._made) >= _MOST:
            self._made.clear()
        self._made[key] = setting, schema, made
        return made
