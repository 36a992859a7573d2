"""Which errors of a schema registry a scheduler may retry."""

from __future__ import annotations

from mirror_lib.schemas.errors import (
    SchemaFormatError,
    SchemaMissingError,
    SchemaRefusedError,
    SchemaRegistryError,
    SchemaRegistryUnreachableError,
)


def test_the_exit_code_asks_for_a_retry_exactly_if_one_may_help() -> None:
    for kind in [
        SchemaFormatError,
        SchemaMissingError,
        SchemaRefusedError,
        SchemaRegistryError,
        SchemaRegistryUnreachableError,
    ]:
        assert (kind.exit_code == 1) is kind.retriable, kind
