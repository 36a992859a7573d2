"""The ways on that `deletions-possibly-lost` names, each taken from the command line until the flow runs again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.errors import DeletionsPossiblyLostError
from mirror_lib.verify.model import VerifyMode
from tests.support.clusters import KafkaPair
from tests.support.compaction import create_compacted, forget, put, state
from tests.support.flows import pair_flow
from tests.support.kafka import delete_topic
from tests.support.verifying import verify

REASON = DeletionsPossiblyLostError.reason


class Scene:
    """A key that was deleted and cleaned at the source between two runs, which the second run has noticed."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic, self.target = pair, topic, f"A.{topic}"
        create_compacted(pair.source, topic)
        put(pair.source, topic, {"kept": "1", "lost": "1"})
        self.flow = pair_flow(folder, pair, topics=topic)
        assert self.flow.run().exit_code == 0
        put(pair.source, topic, {"lost": None})
        forget(pair.source, topic, ["lost"])
        assert self.flow.run().exit_code == 3
        assert self.waiting() == [REASON]

    def waiting(self) -> list[str]:
        return [gap.cause for gap in self.flow.ledger.open_gaps("A->B")]

    def decide(self, *words: str, code: int = 0) -> dict[str, Any]:
        """As the message says: with topic and partition."""
        chosen = ["--flow", "A->B", "--topic", self.topic, "--partition", "0"]
        given = ["gaps", *words, "--config", str(self.flow.path), *chosen, "--yes", "--json"]
        result = CliRunner().invoke(app, given, catch_exceptions=False)
        assert result.exit_code == code, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def runs_again(self) -> None:
        """The flow copies what comes, nobody is asked any more, and records are equal."""
        put(self.pair.source, self.topic, {"later": "1"})
        report = self.flow.run()
        assert (report.exit_code, report.errors) == (0, ())
        assert state(self.pair.target, self.target)["later"] == "1"
        assert self.waiting() == []
        compared = verify(self.flow)
        assert compared.exit_code == 0, compared.to_dict()


@pytest.fixture
def scene(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> Scene:
    return Scene(kafka_pair, topic_name, tmp_path)


def test_accepting_leaves_the_key_and_goes_on(scene: Scene) -> None:
    scene.decide("accept", "--note", "we can live with it")

    scene.runs_again()
    assert "lost" in state(scene.pair.target, scene.target)


def test_a_fresh_copy_has_no_such_keys(scene: Scene) -> None:
    refused = scene.decide("recopy", code=3)
    assert "does not delete" in refused["decisions"][0]["error"]["what"]

    delete_topic(scene.pair.target, scene.target)
    assert scene.flow.run().exit_code == 3
    assert sorted(scene.waiting()) == sorted([REASON, "target-deleted"])
    scene.decide("recopy")

    scene.runs_again()
    assert state(scene.pair.target, scene.target) == state(scene.pair.source, scene.topic)
    assert verify(scene.flow, mode=VerifyMode.STATE).exit_code == 0


def test_a_stop_is_kept_until_it_is_taken_back(scene: Scene) -> None:
    scene.decide("stop")
    put(scene.pair.source, scene.topic, {"meanwhile": "1"})
    assert scene.flow.run().records == 0
    scene.decide("resume")
    scene.decide("accept")

    scene.runs_again()
    assert state(scene.pair.target, scene.target)["meanwhile"] == "1"
