"""A run of a flow that died, or was refused as a whole, names a way on, and that way ends with a flow that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.cli.run.outcome import close_abandoned
from mirror_lib.copy.run_lock import hold_lock
from tests.support.clusters import KafkaPair
from tests.support.console import Console, Said
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import consume, create_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic

COUNT = 10


pytestmark = pytest.mark.usefixtures("without_spark")


class Scene:
    """A topic with records, a flow of it, and an operator at the console."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic = pair, topic
        create_topic(pair.source, topic)
        self.written = values(produce(pair.source, topic, records(COUNT)))
        self.flow: Flow = pair_flow(folder, pair, topics=topic, settings={"admin.timeout.ms": "5000"})
        self.console = Console(self.flow.path)

    def refused(self, reason: str, exit_code: int) -> str:
        """A run that is refused as a whole; returns what is said."""
        said: Said = self.console.run()
        assert (said.exit_code, said.reasons) == (exit_code, {reason}), said.document
        # An invalid file has its advice behind each of its problems.
        return f"{said.document['error']['what']} {said.document['error']['action']}"

    def ends_well(self) -> None:
        self.console.runs_on()
        assert values(consume(self.pair.target, f"A.{self.topic}")) == self.written


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder)


def test_run_locked(scene: Scene) -> None:
    with hold_lock(scene.flow.ledger, flow="A->B", run_id="other", lease_seconds=1):
        action = scene.refused("run-locked", 1)
    assert "Wait for it to end, or stop it" in action
    scene.ends_well()


def test_configuration(scene: Scene) -> None:
    scene.console.change({"A->B.tasks.max": "many"})
    said = scene.refused("invalid-configuration", 2)
    assert "A->B.tasks.max" in said
    scene.console.change({"A->B.tasks.max": "2"})
    scene.ends_well()


def test_broker_unreachable(scene: Scene) -> None:
    scene.console.change({"A.bootstrap.servers": "127.0.0.1:1"})
    assert "bootstrap.servers" in scene.refused("broker-unreachable", 1)
    scene.console.change({"A.bootstrap.servers": scene.pair.source.bootstrap_servers})
    scene.ends_well()


def test_ledger(scene: Scene, tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    scene.console.change({"mirror.ledger.url": f"sqlite:///{nowhere}/ledger.sqlite3"})
    assert "mirror.ledger.url" in scene.refused("ledger", 1)
    scene.console.change({"mirror.ledger.url": f"sqlite:///{tmp_path}/ledger.sqlite3"})
    scene.ends_well()


def test_run_died(scene: Scene) -> None:
    """Killed with its machine: it left a row that says it runs, and nobody renews its lock."""
    scene.flow.ledger.start_run(run_id="dead", flow="A->B", trigger="cli")
    scene.ends_well()
    dead = scene.flow.ledger.run("dead")
    assert dead.error is not None
    assert dead.error["reason"] == "run-died"
    assert "the next run continues at the last stored position" in dead.error["action"]


def test_spark_job(scene: Scene) -> None:
    """Its job was killed, and the command that had started it lives."""
    scene.flow.ledger.start_run(run_id="dead", flow="A->B", trigger="cli")
    close_abandoned(scene.flow.ledger, "dead")
    dead = scene.flow.ledger.run("dead")
    assert dead.error is not None
    assert dead.error["reason"] == "spark-job"
    assert "the next run continues at the last stored position" in dead.error["action"]
    scene.ends_well()
