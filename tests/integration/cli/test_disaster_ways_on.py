"""Each state in which the return after a disaster can be names a way on, and that way ends well.

Both clusters run all the time: the states are those of the return, and `runbook/test_disaster.py` loses the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.features.cutover.failback import after_disaster
from mirror_lib.features.cutover.failback.return_plan import plan_return
from mirror_lib.ledger.handovers import enabled_opposite_of, load_flow_as_it_runs
from mirror_lib.planning.flow_clusters import FlowClusters
from tests.support.clusters import KafkaPair
from tests.support.console import Console, Said
from tests.support.cutovers import migration, numbered
from tests.support.flows import Flow
from tests.support.interruptions import DriverKilledError, killed_after, up_to
from tests.support.kafka import consume, create_topic, delete_topic, produce
from tests.support.mirrored_topic import MirroredTopic

COPIED, LOST, SINCE = 20, 4, 6


pytestmark = pytest.mark.usefixtures("without_spark")


class Scene:
    """A source that is back, clients who write to the target, and an operator at the console."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic = pair, topic
        create_topic(pair.source, topic)
        produce(pair.source, topic, numbered(0, COPIED))
        self.both = migration(folder, pair, topic)
        self.there: Flow = self.both.there
        self.there.run()
        self.console = Console(self.there.path)

    def fail_over(self) -> None:
        """What nobody has copied is on the source, and clients write to the target."""
        produce(self.pair.source, self.topic, numbered(COPIED, COPIED + LOST))
        produce(self.pair.target, self.topic, numbered(100, 100 + SINCE))

    def returns(self, *more: str) -> Said:
        return self.console.say("cutover", "after-disaster", *more)

    def refused(self, reason: str) -> dict[str, object]:
        """The error of the only partition."""
        said = self.returns("--yes")
        assert (said.exit_code, said.document["done"]) == (3, False), said.document
        (partition,) = said.document["partitions"]
        assert partition["error"]["reason"] == reason, partition
        assert not self.there.ledger.handovers.handed_over()
        return dict(partition["error"])

    def values(self, *, target: bool = False) -> list[bytes]:
        cluster = self.pair.target if target else self.pair.source
        return [record.value or b"" for record in consume(cluster, self.topic)]

    def came_home(self) -> None:
        """Everything is on the source once, what came since behind what was lost."""
        numbers = [*range(COPIED + LOST), *range(100, 100 + SINCE)]
        assert self.values() == [b"%08d" % number for number in numbers]


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Iterator[Scene]:
    made = Scene(mirrored.pair, mirrored.name, mirrored.folder)
    yield made
    made.there.ledger.close()


def test_shown_and_then_carried_out(scene: Scene) -> None:
    scene.fail_over()
    shown = scene.returns("--dry-run")
    scene.console.follow({"action": shown.document["action"]}, "cutover after-disaster")
    # Nothing is left to hand over, which is said with what is left to do
    again = scene.returns("--yes")
    assert (again.exit_code, again.reasons) == (2, {"configuration"})
    scene.console.follow(again.document["error"], "run")
    scene.came_home()


def test_while_the_source_is_away(scene: Scene) -> None:
    scene.fail_over()
    scene.console.change({"A.bootstrap.servers": "127.0.0.1:1", "admin.timeout.ms": "5000"})
    said = scene.returns("--yes")
    assert (said.exit_code, said.reasons) == (1, {"broker-unreachable"})
    assert not scene.there.ledger.handovers.handed_over()
    scene.console.change({"A.bootstrap.servers": scene.pair.source.bootstrap_servers})
    assert scene.returns("--yes").exit_code == 0
    assert scene.both.back.run().records == SINCE
    scene.came_home()


def test_while_a_run_holds_the_lock(scene: Scene) -> None:
    scene.fail_over()
    with hold_lock(scene.there.ledger, flow="B->A", run_id="other", lease_seconds=1):
        said = scene.returns("--yes")
    assert said.reasons == {"run-locked"}, said.document
    assert not scene.there.ledger.handovers.handed_over()
    assert scene.returns("--yes").exit_code == 0
    assert scene.both.back.run().records == SINCE
    scene.came_home()


def test_died_before_the_topics_were_handed_over(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.fail_over()

    def die(*_: object, **__: object) -> None:
        raise DriverKilledError

    with monkeypatch.context() as patched:
        patched.setattr(after_disaster, "handed_over_rows", die)
        file, flow = load_flow_as_it_runs(scene.there.path, "A->B")
        plan = plan_return(flow, enabled_opposite_of(file, flow), [scene.topic])
        with pytest.raises(DriverKilledError):
            after_disaster.apply_return(
                flow, plan.opposite, scene.there.ledger, [scene.topic], agreed=plan.fingerprint, by="ann"
            )

    assert scene.returns("--yes").exit_code == 0

    # What never came is noted once
    assert [(gap.first_offset, gap.next_offset) for gap in scene.there.ledger.gaps("A->B")] == [(20, 24)]
    assert scene.console.say("run", "--flow", "B->A").exit_code == 0
    scene.came_home()


def test_a_source_that_came_back_with_less(scene: Scene) -> None:
    delete_topic(scene.pair.source, scene.topic)
    create_topic(scene.pair.source, scene.topic)
    produce(scene.pair.target, scene.topic, numbered(100, 100 + SINCE))
    copied_all_back(scene, scene.refused("source-recreated"))


def test_a_target_that_was_created_again(scene: Scene) -> None:
    delete_topic(scene.pair.target, scene.topic)
    create_topic(scene.pair.target, scene.topic)
    produce(scene.pair.target, scene.topic, numbered(100, 100 + SINCE))
    copied_all_back(scene, scene.refused("target-recreated"))


def copied_all_back(scene: Scene, error: dict[str, object]) -> None:
    """Take the way by which the source becomes a copy of the target."""
    action = str(error["action"])
    assert "Delete the topic on the source" in action
    delete_topic(scene.pair.source, scene.topic)
    assert "set A->B.enabled = false and B->A.mirror.failback = false in the file" in action
    scene.console.change({"A->B.enabled": "false", "B->A.mirror.failback": "false"})
    scene.console.follow(error, "run")
    assert scene.values() == scene.values(target=True)


def test_a_backfill_that_was_interrupted(scene: Scene) -> None:
    interrupt_backfill(scene)
    produce(scene.pair.source, scene.topic, numbered(COPIED, COPIED + LOST))

    error = scene.refused("unclean-start")
    said = scene.console.follow(error, "backfill run")
    assert said.failures == []
    produce(scene.pair.target, scene.topic, numbered(100, 100 + SINCE))
    scene.console.follow(error, "cutover after-disaster")
    assert scene.console.say("run", "--flow", "B->A").exit_code == 0

    scene.came_home()


def test_a_backfill_that_was_interrupted_and_clients_who_wrote_since(scene: Scene) -> None:
    interrupt_backfill(scene)
    produce(scene.pair.target, scene.topic, numbered(100, 100 + SINCE))

    error = scene.refused("unclean-start")
    diverged = scene.console.say("backfill", "run", "--name", "history")
    assert diverged.reasons == {"target-diverged"}
    assert "If it stops with target-diverged" in str(error["action"])
    copied_all_back(scene, error)


def interrupt_backfill(scene: Scene) -> None:
    config, ledger = load(scene.there.path).flow("A->B"), scene.there.ledger
    request = request_of(config, [scene.topic], "earliest", "offset 5", into_same=True)
    with FlowClusters.connect(config) as clusters:
        prepare_backfill(config, clusters, ledger, request, "history")
    runner = killed_after(up_to(3))
    with pytest.raises(DriverKilledError):
        run_backfill(config, "history", ledger=ledger, make_runner=lambda: runner, options=RunOptions())
