"""`mirror transform preflight` between real brokers, with a schema registry for each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.schemas.avro import AvroCodec
from mirror_lib.schemas.model import Schema, SchemaType
from mirror_lib.schemas.registry import SchemaRegistry
from mirror_lib.schemas.rest import RegistryAccess
from testbed.schema_registry import LocalSchemaRegistry
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, admin, create_topic, delete_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic

_WRITES = ("POST", "PUT", "DELETE")


def schema(*fields: str) -> Schema:
    columns = [{"name": each, "type": "string", "default": ""} for each in fields]
    return Schema(SchemaType.AVRO, json.dumps({"type": "record", "name": "Order", "fields": columns}))


FIRST, SECOND, OTHER = schema("country"), schema("country", "card"), schema("elsewhere")


class Scene:
    """Two clusters with their registries, and a flow that filters orders by their Avro and takes all else as it is."""

    def __init__(
        self, pair: KafkaPair, source: LocalSchemaRegistry, target: LocalSchemaRegistry, topic: str, folder: Path
    ) -> None:
        self.pair, self.topic, self.folder = pair, topic, folder
        self.local = source, target
        self.source, self.target = (SchemaRegistry(RegistryAccess((each.url,))) for each in self.local)
        self.orders, self.carts = f"{topic}-orders", f"{topic}-carts"
        self.flow = self.flow_with(
            {
                "A->B.mirror.transform.registry.source.url": source.url,
                "A->B.mirror.transform.registry.target.url": target.url,
                "A->B.mirror.transforms": "german",
                "A->B.mirror.transform.german.topics": self.orders,
                "A->B.mirror.transform.german.decode.value": "avro",
                "A->B.mirror.transform.german.filter": "value.country = 'DE'",
            }
        )

    def flow_with(self, settings: Mapping[str, str]) -> Flow:
        return pair_flow(self.folder, self.pair, topics=f"{self.topic}-.*", settings=settings)

    def write(self, topic: str, number: int, count: int, *, partition: int = 0) -> None:
        """Records by the schema of an id."""
        columns = json.loads(self.source.schema(number).text)["fields"]
        value = AvroCodec(self.source).encode(number, {each["name"]: "DE" for each in columns})
        produce(self.pair.source, topic, [Record(value=value, partition=partition)] * count)

    def preflight(self, *words: str) -> tuple[int, dict[str, Any]]:
        result = self._called(*words, "--json")
        return result[0], json.loads(result[1])

    def told(self, *words: str) -> tuple[int, str]:
        return self._called(*words)

    def _called(self, *words: str) -> tuple[int, str]:
        given = ["transform", "preflight", "--config", str(self.flow.path), "--flow", "A->B", *words]
        result = CliRunner().invoke(app, given)
        return result.exit_code, result.stdout

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


def test_given_a_topic_that_no_transform_decodes_then_its_ids_must_be_the_same_on_the_target(scene: Scene) -> None:
    create_topic(scene.pair.source, scene.carts)
    number = scene.source.register(f"{scene.carts}-value", FIRST)
    scene.write(scene.carts, number, 3)

    code, found = scene.preflight("--topics", scene.carts, "--register")

    assert code == 1
    assert outcomes(found) == {(scene.carts, number): ("missing", None)}
    assert found["schemas"][0]["id_is_taken"]
    assert found["registered"] == [], "the id is another schema's: registering would not help"
    there = scene.target.register(f"A.{scene.carts}-value", FIRST)
    assert outcomes(scene.preflight()[1]) == {(scene.carts, number): ("not-rewritten", there)}


def test_given_ids_that_are_the_same_on_both_sides_then_a_copy_as_it_is_is_in_order(mirrored: MirroredTopic) -> None:
    with LocalSchemaRegistry() as source, LocalSchemaRegistry() as target:
        scene = Scene(mirrored.pair, source, target, mirrored.name, mirrored.folder)
        create_topic(mirrored.source, scene.carts)
        number = scene.source.register(f"{scene.carts}-value", FIRST)
        scene.target.register("whatever", FIRST)
        scene.write(scene.carts, number, 3)

        code, found = scene.preflight()

    assert code == 0
    assert outcomes(found) == {(scene.carts, number): ("same", number)}


def test_given_records_without_schemas_then_nothing_is_found_and_it_is_in_order(scene: Scene) -> None:
    create_topic(scene.pair.source, scene.carts)
    produce(scene.pair.source, scene.carts, records(20))

    code, told = scene.told("--topics", scene.carts)

    assert code == 0
    lines = told.splitlines()
    assert lines[0].startswith("Sample: 20 of at most 20 records of 1 topic,")
    assert lines[1:] == ["No schemas were found.", "Nothing was written."]


def test_given_both_ends_of_a_topic_then_a_person_is_told_of_the_sample_and_of_each_schema(scene: Scene) -> None:
    old, new = (scene.source.register(f"{scene.orders}-value", each) for each in (FIRST, SECOND))
    scene.target.register(f"A.{scene.orders}-value", SECOND)
    scene.write(scene.orders, old, 50)
    scene.write(scene.orders, new, 50)

    code, told = scene.told("--records", "20")

    assert code == 1
    assert told.splitlines() == [
        f"{scene.orders}: 20 of at most 100 records sampled",
        f"  value id {old} (in 10 records): missing on the target, to be registered under A.{scene.orders}-value; "
        "the id belongs to another schema there",
        f"  value id {new} (in 10 records): rewritten to 6 (A.{scene.orders}-value)",
        "Sample: 20 of at most 100 records of 1 topic, the oldest and the newest of all partitions. Other records "
        "may use other schemas.",
        "Schemas in use: 2. Correct on the target: 1, 1 missing.",
        "Nothing was written.",
    ]


def test_given_an_id_that_the_source_does_not_know_then_it_is_told(scene: Scene) -> None:
    scene.source.register(f"{scene.orders}-value", FIRST)
    produce(scene.pair.source, scene.orders, [Record(value=b"\0\0\0\0\x63payload")])

    code, found = scene.preflight()

    assert code == 1
    assert outcomes(found) == {(scene.orders, 99): ("unknown", None)}


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


def test_given_a_transform_that_sets_what_it_decodes_then_the_latest_version_is_asked_for_too(scene: Scene) -> None:
    old, latest = (scene.source.register(f"{scene.orders}-value", each) for each in (FIRST, SECOND))
    scene.write(scene.orders, old, 1)
    before = "A->B.mirror.transform.mask"
    settings = {"topics": scene.orders, "decode.value": "avro", "value": "value"}
    text = scene.flow.path.read_text().replace("A->B.mirror.transforms = german", "A->B.mirror.transforms = mask")
    scene.flow.path.write_text(text + "".join(f"{before}.{name} = {value}\n" for name, value in settings.items()))

    code, found = scene.preflight()

    assert code == 1
    assert {each["id"]: each["records"] for each in found["schemas"]} == {old: 1, latest: 0}


def test_given_a_registry_that_refuses_then_its_error_is_told_with_its_exit_code(scene: Scene) -> None:
    number = scene.source.register(f"{scene.orders}-value", FIRST)
    scene.write(scene.orders, number, 1)
    scene.local[1].answer("PUT", "/mode", None, b'{"mode": "READONLY"}')

    code, found = scene.preflight("--register")

    assert (code, found["error"]["reason"], found["registered"]) == (3, "schema-refused", [])


def test_given_a_decoded_topic_without_a_subject_then_the_configuration_is_wrong_as_in_a_run(scene: Scene) -> None:
    produce(scene.pair.source, scene.orders, [Record(value=b"\0\0\0\0\1payload")])

    code, found = scene.preflight()

    assert (code, found["error"]["reason"]) == (2, "configuration")
    assert f"no subject {scene.orders}-value" in found["error"]["what"]


def test_given_a_flow_without_registries_then_it_is_told_which_keys_are_to_be_set(scene: Scene) -> None:
    scene.flow = scene.flow_with({})

    code, found = scene.preflight()

    assert (code, found["error"]["reason"]) == (2, "configuration")
    for side in ("source", "target"):
        assert f"mirror.transform.registry.{side}.url" in found["error"]["action"]
