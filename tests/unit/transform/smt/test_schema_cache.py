"""What is made of schemas once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.transform.smt.schema_cache import SchemaCache
from mirror_lib.transform.smt.values.data import STRING, DataError, Schema, SchemaType


def test_what_was_made_of_a_schema_by_a_setting_is_found_again() -> None:
    cache: SchemaCache[list[str]] = SchemaCache()
    setting = object()

    first, again = (cache.get(setting, STRING, lambda: ["made"]) for _ in range(2))

    assert first is again
    assert cache.get(object(), STRING, lambda: ["other"]) == ["other"]
    assert cache.get(setting, replace(STRING), lambda: ["of another schema"]) == ["of another schema"]


def test_a_failure_is_not_kept() -> None:
    cache: SchemaCache[str] = SchemaCache()
    setting = object()

    def fail() -> str:
        raise DataError("no")

    for _ in range(2):
        with pytest.raises(DataError, match="no"):
            cache.get(setting, STRING, fail)
    assert cache.get(setting, STRING, lambda: "made") == "made"


def test_schemas_without_end_are_told_apart() -> None:
    cache: SchemaCache[str | None] = SchemaCache()
    setting = object()

    # None of these objects is kept by anybody else, so their places in memory are used again.
    for number in range(1000):
        schema = Schema(SchemaType.STRUCT, name=f"s{number}")
        assert cache.get(setting, schema, lambda name=schema.name: name) == f"s{number}"  # type: ignore[misc]
