"""Keys and values with schema ids, as a preview shows them; with real registries."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mirror_lib.features.demo.ports import free_ports
from mirror_lib.features.transforms import model
from mirror_lib.features.transforms.model import DataFormat, DecodeSettings, Decoding, Transform, TransformChain
from mirror_lib.features.transforms.preview.preview import Change
from mirror_lib.features.transforms.preview.schemas import SchemaTexts
from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.model import Schema, SchemaType
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from tools.testbed.schema_registry import LocalSchemaRegistry

ORDER = Schema(
    SchemaType.AVRO,
    json.dumps({"type": "record", "name": "Order", "fields": [{"name": "city", "type": "string"}]}),
)
OTHER = Schema(SchemaType.AVRO, '"long"')
ZURICH = {"city": "Zürich"}


class Registries:
    """A source's and a target's, where the schema of orders has different ids."""

    def __init__(self, source: LocalSchemaRegistry, target: LocalSchemaRegistry) -> None:
        self.urls = source.url, target.url
        registries = [SchemaRegistry(RegistryAccess((url,))) for url in self.urls]
        registries[1].register("numbers-value", OTHER)
        self.ids = [each.register("orders-value", ORDER) for each in registries]
        self.codecs = [AvroCodec(each) for each in registries]

    def framed(self, which: int) -> bytes:
        """An order with the schema id of the source (0) or of the target (1)."""
        return self.codecs[which].encode(self.ids[which], ZURICH)

    def chain(self, *, renumbers: bool) -> TransformChain:
        avro = Transform("change", decode=DecodeSettings(value=Decoding(DataFormat.AVRO)))
        source, target = (model.SchemaRegistry((url,)) for url in self.urls)
        return TransformChain((avro,), None, source, target if renumbers else None)


@pytest.fixture(scope="module")
def registries() -> Iterator[Registries]:
    with LocalSchemaRegistry() as source, LocalSchemaRegistry() as target:
        yield Registries(source, target)


def test_a_value_is_read_by_the_registry_that_its_id_is_of(registries: Registries) -> None:
    assert registries.ids[0] != registries.ids[1]
    texts = SchemaTexts(registries.chain(renumbers=True))

    for which in (0, 1):
        found = texts.text(Change.VALUE, registries.framed(which), made=bool(which))
        assert found is not None
        assert json.loads(found) == ZURICH
        assert "Zürich" in found


def test_without_a_registry_of_the_target_ids_stay_those_of_the_source(registries: Registries) -> None:
    texts = SchemaTexts(registries.chain(renumbers=False))

    assert texts.text(Change.VALUE, registries.framed(0), made=True) == json.dumps(ZURICH, ensure_ascii=False)


def test_what_no_schema_can_read_stays_bytes(registries: Registries) -> None:
    texts = SchemaTexts(registries.chain(renumbers=True))
    for content in [None, b"", b"text", b"\0\0\0\x7f\xff?", b"\0\0\0\0\1\xff"]:
        assert texts.text(Change.VALUE, content, made=False) is None, content
    # The side is not decoded by a registry, or none is set.
    assert texts.text(Change.KEY, registries.framed(0), made=False) is None
    without = SchemaTexts(TransformChain(registries.chain(renumbers=False).transforms))
    assert without.text(Change.VALUE, registries.framed(0), made=False) is None


def test_a_registry_that_does_not_answer_leaves_bytes_and_is_asked_once(registries: Registries) -> None:
    avro = registries.chain(renumbers=False).transforms
    (port,) = free_ports(1)
    texts = SchemaTexts(TransformChain(avro, None, model.SchemaRegistry((f"http://127.0.0.1:{port}",))))

    assert texts.text(Change.VALUE, registries.framed(0), made=False) is None
    with LocalSchemaRegistry(port=port) as late:
        SchemaRegistry(RegistryAccess((late.url,))).register("orders-value", ORDER)
        assert texts.text(Change.VALUE, registries.framed(0), made=False) is None
