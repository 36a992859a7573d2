"""`mirror transform preflight` between real brokers, with a schema registry for each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.model import Schema, SchemaType
from mirror_lib.features.transforms.schemas.registry import SchemaRegistry
from mirror_lib.features.transforms.schemas.rest import RegistryAccess
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, admin, create_topic, delete_topic, produce
from tests.support.mirrored_topic import MirroredTopic
from tests.support.terminal import invoke
from tools.testbed.schema_registry import LocalSchemaRegistry

_WRITES = ("POST", "PUT", "DELETE")


def schema(*fields: str) -> Schema:
    columns = [{"name": each, "type": "string", "default": ""} for each in fields]
    return Schema(SchemaType.AVRO, json.dumps({"type": "record", "name": "Order", "fields": columns}))


FIRST, SECOND = schema("country"), schema("country", "card")


class Scene:
    """Two clusters with their registries, and a flow that filters orders by their Avro and takes all else as it is."""

    def __init__(
        self, pair: KafkaPair, source: LocalSchemaRegistry, target: LocalSchemaRegistry, topic: str, folder: Path
    ) -> None:
        self.pair, self.topic = pair, topic
        self.local = source, target
        self.source, self.target = (SchemaRegistry(RegistryAccess((each.url,))) for each in self.local)
        self.orders, self.carts = f"{topic}-orders", f"{topic}-carts"
        settings = {
            "A->B.mirror.transform.registry.source.url": source.url,
            "A->B.mirror.transform.registry.target.url": target.url,
            "A->B.mirror.transforms": "german",
            "A->B.mirror.transform.german.topics": self.orders,
            "A->B.mirror.transform.german.decode.value": "avro",
            "A->B.mirror.transform.german.filter": "value.country = 'DE'",
        }
        self.flow = pair_flow(folder, pair, topics=f"{topic}-.*", settings=settings)

    def write(self, topic: str, number: int, count: int, *, partition: int = 0) -> None:
        """Records by the schema of an id."""
        columns = json.loads(self.source.schema(number).text)["fields"]
        value = AvroCodec(self.source).encode(number, {each["name"]: "DE" for each in columns})
        produce(self.pair.source, topic, [Record(value=value, partition=partition)] * count)

    def preflight(self, *words: str) -> tuple[int, dict[str, Any]]:
        code, shown = self.told(*words, "--json")
        return code, json.loads(shown)

    def told(self, *words: str) -> tuple[int, str]:
        return invoke("transform", "preflight", "--config", self.flow.path, "--flow", "A->B", *words)[:2]

    def written_to(self, side: int) -> list[str]:
        """What a registry was asked to change; a look-up is a POST to the subject itself."""
        return [
            each.path
            for each in self.local[side].asked
            if each.method in _WRITES and not (each.method == "POST" and not each.path.endswith("/versions"))
        ]


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Iterator[Scene]:
    with LocalSchemaRegistry() as source, LocalSchemaRegistry() as target:
        found = Scene(mirrored.pair, source, target, mirrored.name, mirrored.folder)
        create_topic(mirrored.source, found.orders, partitions=2)
        # The target has had schemas of its own.
        for number in range(5):
            found.target.register("another", schema(f"field{number}"))
        yield found


def outcomes(found: dict[str, Any]) -> dict[tuple[str, int], tuple[str, int | None]]:
    return {(each["topic"], each["id"]): (each["outcome"], each["target_id"]) for each in found["schemas"]}


def test_given_schemas_that_the_target_lacks_then_they_are_told_registered_on_request_and_rewritten(
    scene: Scene,
) -> None:
    old, new = (scene.source.register(f"{scene.orders}-value", each) for each in (FIRST, SECOND))
    # Each end of the topic, and each partition, has one of them only.
    scene.write(scene.orders, old, 300)
    scene.write(scene.orders, new, 300, partition=1)
    topics = set(admin(scene.pair.target).list_topics(timeout=30).topics)

    code, found = scene.preflight("--records", "10")

    assert code == 1
    assert outcomes(found) == {(scene.orders, number): ("missing", None) for number in (old, new)}
    assert {each["subject"] for each in found["schemas"]} == {f"A.{scene.orders}-value"}
    assert found["topics"] == [{"topic": scene.orders, "records": 10, "held": 600, "unreadable": 0}]
    assert "registered" not in found
    assert scene.target.subjects() == ("another",), "without --register nothing is written"

    code, found = scene.preflight("--records", "10", "--register")

    subject = f"A.{scene.orders}-value"
    assert code == 0, found
    assert found["registered"] == [{"subject": subject, "type": "AVRO"}] * 2
    assert outcomes(found) == {(scene.orders, old): ("rewritten", 6), (scene.orders, new): ("rewritten", 7)}
    assert scene.target.schema(6) == scene.source.schema(old)
    assert scene.preflight("--records", "10")[0] == 0
    assert scene.preflight("--register")[1]["registered"] == [], "what is there is not registered again"
    assert scene.written_to(0) == [f"/subjects/{scene.orders}-value/versions"] * 2, "only by this test"
    assert set(admin(scene.pair.target).list_topics(timeout=30).topics) == topics


def test_given_heartbeats_then_they_are_not_taken_for_schemas(scene: Scene) -> None:
    scene.source.register("anything", FIRST)
    heartbeats = f"{scene.topic}.heartbeats"
    create_topic(scene.pair.source, heartbeats)
    try:
        # The version of the format, and the time: read as a frame, the schema with the id 1.
        value = (0).to_bytes(2) + (1_704_067_200_000).to_bytes(8)
        produce(scene.pair.source, heartbeats, [Record(key=b"\0\0\0\1A\0\1B", value=value)])

        code, found = scene.preflight()
    finally:
        # Every flow between the shared clusters would take it along.
        delete_topic(scene.pair.source, heartbeats)

    assert code == 0
    assert found["schemas"] == found["lookalikes"] == []
    assert heartbeats not in [each["topic"] for each in found["topics"]]


def test_given_a_registry_that_refuses_then_its_error_is_told_with_its_exit_code(scene: Scene) -> None:
    number = scene.source.register(f"{scene.orders}-value", FIRST)
    scene.write(scene.orders, number, 1)
    scene.local[1].answer("PUT", "/mode", None, b'{"mode": "READONLY"}')

    code, found = scene.preflight("--register")

    assert (code, found["error"]["reason"], found["registered"]) == (3, "schema-refused", [])
