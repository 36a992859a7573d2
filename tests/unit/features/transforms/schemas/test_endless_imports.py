"""A registry, or an impostor, whose schemas import one another without end."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError, SchemaRegistryError
from mirror_lib.features.transforms.schemas.preflight import read_source
from mirror_lib.features.transforms.schemas.protobuf import ProtobufCodec
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from mirror_lib.outside_limits import SCHEMA_IMPORT_LEVELS, SCHEMA_IMPORTS

#: The schemas that a schema imports; schema 0 has the id.
Imports = Callable[[int], list[int]]


def _file(number: int, imports: list[int]) -> str:
    file = FileDescriptorProto(name="x", syntax="proto3", package=f"p{number}", dependency=[f"s{n}" for n in imports])
    file.message_type.add(name="M")
    return base64.b64encode(file.SerializeToString()).decode()


class Hostile(SchemaRegistry):
    """A registry with a subject per schema; its answers do not go over HTTP, which takes longer than all else."""

    def __init__(self, kind: str, imports: Imports, listed: Imports | None = None) -> None:
        """`listed` are the references, if they differ from the imports of the file."""
        super().__init__(RegistryAccess.of("http://127.0.0.1:1"))
        self._kind, self._imports, self._listed = kind, imports, listed or imports

    def _get(self, path: str, **_: str | None) -> Any:
        if path.endswith("/versions"):
            return [{"subject": "s0", "version": 1}]
        found = re.match(r"/subjects/s(\d+)/", path)
        number = int(found[1]) if found else 0
        references = [{"name": f"s{n}", "subject": f"s{n}", "version": 1} for n in self._listed(number)]
        text = '{"type": "string"}' if self._kind == "AVRO" else _file(number, self._imports(number))
        answer = {"schema": text, "references": references, "schemaType": self._kind}
        return {**answer, "subject": f"s{number}", "version": 1, "id": number}


def _levels_twice(number: int) -> list[int]:
    """First a chain, as deep as allowed; then, as deep, another one that ends at its beginning."""
    if number == 0:
        return [1, 100]
    return [number + 1] if number % 100 < SCHEMA_IMPORT_LEVELS - 1 else [] if number < 100 else [1]


ENDLESS: dict[str, tuple[Imports, str]] = {
    "itself": (lambda _: [0], "imports itself"),
    "a cycle": (lambda number: [(number + 1) % 3], "imports itself"),
    "a chain": (lambda number: [number + 1], "over more than 64 levels"),
    "a chain behind a chain": (_levels_twice, "over more than 64 levels"),
    "many": (lambda number: list(range(1, SCHEMA_IMPORTS + 2)) if number == 0 else [], "more than 1,000 schemas"),
    "a tree": (lambda number: [9 * number + n for n in range(1, 200)], "more than 1,000 schemas"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_imports_without_end_are_an_error_of_the_registry(name: str) -> None:
    imports, expected = ENDLESS[name]
    for kind in ("AVRO", "PROTOBUF"):
        source = Hostile(kind, imports)
        codec = AvroCodec(source) if kind == "AVRO" else ProtobufCodec(source)
        for read in (codec.schema, lambda number, source=source: read_source(source, {number: ["t-value"]})):
            with pytest.raises(SchemaRegistryError, match=expected) as caught:
                read(0)
            assert not caught.value.retriable


def test_files_that_import_one_another_deeper_than_their_references_are_a_wrong_schema() -> None:
    def imports(number: int) -> list[int]:
        return [number + 1] if number < SCHEMA_IMPORTS else []

    def listed(number: int) -> list[int]:
        return list(range(1, 100)) if number == 0 else []

    with pytest.raises(SchemaFormatError, match="64 levels"):
        ProtobufCodec(Hostile("PROTOBUF", imports, listed)).schema(0)


def test_as_many_levels_as_allowed_are_read_and_each_import_once() -> None:
    def imports(number: int) -> list[int]:
        return [n for n in (number + 1, number + 2) if n <= SCHEMA_IMPORT_LEVELS]

    source = Hostile("AVRO", imports)
    assert len(read_source(source, {0: ["t-value"]}).imported) == SCHEMA_IMPORT_LEVELS
    assert AvroCodec(source).schema(0).decode(b"\x0cstring") == "string"
