"""`mirror position`: the way on where no rule may decide, on real clusters."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.errors import TargetDeletedError
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.interruptions import interrupted, killed_after, up_to
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.terminal import invoke


class Scene:
    """A flow of one topic, and a person at the console."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.pair, self.topic = pair, topic
        create_topic(pair.source, topic)
        self.flow: Flow = pair_flow(folder, pair, topics=topic, settings=settings or {})

    def say(self, verb: str, *words: str) -> tuple[int, dict[str, Any]]:
        code, shown, _ = self._told(verb, *words, "--json")
        return code, json.loads(shown)

    def shown(self, verb: str, *words: str) -> str:
        """What the command writes to both outputs for a person."""
        return "".join(self._told(verb, *words)[1:])

    def _told(self, verb: str, *words: str) -> tuple[int, str, str]:
        return invoke("position", verb, "--config", self.flow.path, "--flow", "A->B", "--topic", self.topic, *words)

    def on_target(self) -> list[bytes | None]:
        return [record.value for record in consume(self.pair.target, f"A.{self.topic}")]


def values(*found: list[Record]) -> list[bytes | None]:
    return [record.value for each in found for record in each]


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder)


def test_a_target_that_lost_everything_is_filled_again_from_the_start(scene: Scene) -> None:
    copied = produce(scene.pair.source, scene.topic, records(12))
    assert scene.flow.run().errors == ()
    delete_topic(scene.pair.target, f"A.{scene.topic}")
    produce(scene.pair.source, scene.topic, records(1, start=12))
    (error,) = scene.flow.run().errors
    assert isinstance(error, TargetDeletedError)

    code, told = scene.say("set", "--to", "earliest", "--yes")

    assert code == 0
    (change,) = told["changes"]
    assert (change["position"], change["new_position"], change["target_offset"]) == (12, 0, 0)
    assert scene.flow.run().records == 13
    assert scene.on_target() == values(copied, records(1, start=12))
    assert scene.flow.ledger.gaps("A->B")[0].state == "recopied"


def test_positions_are_shown_set_to_times_and_forgotten(scene: Scene) -> None:
    written = produce(scene.pair.source, scene.topic, records(10))
    scene.flow.run()
    _, shown = scene.say("show")
    (row,) = shown["positions"]
    assert (row["next_offset"], row["target_offset"], row["state"], row["claim"]) == (10, 10, "closed", 1)

    assert written[4].timestamp_ms == datetime(2024, 1, 1, 0, 0, 4, tzinfo=UTC).timestamp() * 1000
    code, told = scene.say("set", "--partition", "0", "--to", "2024-01-01T00:00:04Z", "--yes")
    assert (code, told["changes"][0]["new_position"]) == (0, 4)

    code, _ = scene.say("reset", "--yes")
    assert code == 0
    assert scene.say("show")[1]["positions"] == []


def test_what_cannot_be_is_refused_and_nothing_happens_without_consent(scene: Scene) -> None:
    produce(scene.pair.source, scene.topic, records(10))
    scene.flow.run()
    before = scene.say("show")[1]["positions"]

    beyond, told = scene.say("set", "--to", "11", "--yes")
    assert (beyond, told["error"]["reason"], told["done"]) == (2, "configuration", 0)
    shown = scene.shown("set", "--to", "11", "--yes")
    assert shown.count("but not 11") == 1
    assert "Nothing was changed." in shown
    unknown, told = scene.say("set", "--partition", "7", "--to", "latest", "--yes")
    assert (unknown, told["error"]["reason"]) == (2, "configuration")
    # Nobody is there to agree.
    refused, told = scene.say("set", "--to", "3")
    assert (refused, told["done"]) == (1, 0)

    assert scene.say("show")[1]["positions"] == before
    assert scene.flow.ledger.gaps("A->B") == ()


def test_what_an_interrupted_run_left_out_and_where_its_records_are_is_kept(mirrored: MirroredTopic) -> None:
    mirrored.create_remote(configs={"max.message.bytes": "2000"})
    scene = Scene(mirrored.pair, mirrored.name, mirrored.folder, {"mirror.poison.policy": "skip"})
    mirrored.produce([*records(10), Record(value=b"x" * 5000), *records(10, start=10)])
    interrupted(scene.flow, killed_after(up_to(15)))

    code, _ = scene.say("set", "--to", "15", "--note", "as agreed", "--yes")

    assert code == 0
    skipped, was_set = sorted(scene.flow.ledger.gaps("A->B"), key=lambda gap: gap.cause != "record-too-large")
    assert (skipped.first_offset, skipped.next_offset, skipped.state) == (10, 11, "accepted")
    assert (was_set.cause, was_set.first_offset, was_set.next_offset) == ("position-set", 0, 15)
    assert (was_set.state, was_set.note, was_set.decided_by not in (None, "unknown")) == ("accepted", "as agreed", True)
    assert scene.flow.run().records == 6
    assert len(scene.on_target()) == 20
