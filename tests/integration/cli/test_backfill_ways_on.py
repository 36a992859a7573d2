"""Each state in which a backfill can stand names a way on, and that way, taken from the command line, ends well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.clusters import KafkaPair
from tests.support.console import Console, Said
from tests.support.flows import pair_flow
from tests.support.interruptions import DriverKilledError, killed_after, up_to
from tests.support.kafka import Record, consume, create_topic, delete_records, delete_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic

COUNT = 20


pytestmark = pytest.mark.usefixtures("without_spark")


class Scene:
    """A topic with records, a backfill of it called `history`, and an operator at the console."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic, self.live = pair, topic, f"A.{topic}"
        self.old = f"{topic}-old"
        create_topic(pair.source, topic)
        self.written = self.produce(COUNT)
        self.flow = pair_flow(folder, pair, topics=topic)
        self.console = Console(self.flow.path)

    def produce(self, count: int, *, start: int = 0) -> list[bytes | None]:
        return values(produce(self.pair.source, self.topic, records(count, start=start)))

    def foreign(self, topic: str) -> None:
        produce(self.pair.target, topic, [Record(value=b"foreign")])

    def on_target(self, topic: str) -> list[bytes | None]:
        return values(consume(self.pair.target, topic))

    def define(self, name: str = "history", *, end: str = "latest", into: str | None = None) -> None:
        """What the first run of a backfill does before its job."""
        request = request_of(self.flow.config, [self.topic], "earliest", end, into=into, into_same=into is None)
        with FlowClusters.connect(self.flow.config) as clusters:
            prepare_backfill(self.flow.config, clusters, self.flow.ledger, request, name)

    def interrupt(self, copied: Callable[[CopyJob], CopyJob], name: str = "history") -> None:
        """A run of the backfill whose driver dies."""
        runner: Callable[[CopyJob], list[PartitionResult]] = killed_after(copied)
        with pytest.raises(DriverKilledError):
            run_backfill(
                self.flow.config, name, ledger=self.flow.ledger, make_runner=lambda: runner, options=RunOptions()
            )

    def interrupt_live(self) -> None:
        """A backfill of five records into the topic of a flow that has run, of which three are copied."""
        self.console.copied()
        self.define(end="offset 5")
        self.interrupt(up_to(3))

    def repeat(self, name: str = "history", *more: str) -> Said:
        return self.console.say("backfill", "run", "--name", name, *more)

    def listed(self, state: str) -> dict[str, str]:
        """What `mirror backfill list` says of the only backfill."""
        (said,) = self.console.say("backfill", "list").document["backfills"]
        assert said["state"] == state, said
        return {"action": said["action"]}

    def stopped(self, reason: str, name: str = "history") -> dict[str, object]:
        said = self.repeat(name)
        assert said.exit_code == 3, said.document
        assert said.reasons == {reason}, said.document
        return said.failures[0]

    def leads_on(self, reason: str, topic: str, copied: list[bytes | None]) -> None:
        """A run stops for this reason; the run that its message names leaves these values in this topic."""
        done(self.console.follow(self.stopped(reason), "backfill run"))
        assert self.on_target(topic) == copied


def done(said: Said) -> None:
    assert (said.exit_code, said.failures) == (0, []), said.document


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder)


class TestTheList:
    def test_each_state_is_shown_with_the_command_that_leads_to_the_next(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        scene.console.follow(scene.listed("defined"), "backfill run", "--max-bytes", "500")
        scene.listed("partly-copied")
        scene.interrupt(up_to(12))
        interrupted = scene.listed("interrupted")
        with hold_lock(scene.flow.ledger, flow="A->B#backfill-history", run_id="other", lease_seconds=30):
            scene.listed("running")
        delete_records(scene.pair.target, scene.old, before=12)
        with pytest.raises(AssertionError, match="unclean-start"):
            scene.console.follow(interrupted, "backfill run")
        scene.console.follow(scene.listed("stopped"), "backfill run")
        assert scene.on_target(f"{scene.old}.anew") == scene.written
        said = scene.console.say("backfill", "list")
        assert [each["state"] for each in said.document["backfills"]] == ["finished", "stopped"]


class TestIntoAnotherTopic:
    def test_deleted_range(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        delete_records(scene.pair.source, scene.topic, before=8)
        scene.leads_on("retention-gap", scene.old, scene.written[8:])

    def test_interrupted_and_the_range_deleted(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        scene.interrupt(up_to(12))
        delete_records(scene.pair.source, scene.topic, before=15)
        scene.leads_on("retention-gap", f"{scene.old}.anew", scene.written[15:])

    def test_source_created_again(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        done(scene.repeat("history", "--max-bytes", "500"))
        delete_topic(scene.pair.source, scene.topic)
        create_topic(scene.pair.source, scene.topic)
        written = scene.produce(5, start=100)
        scene.leads_on("source-recreated", f"{scene.old}.anew", written)

    def test_target_deleted(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        done(scene.repeat("history", "--max-bytes", "500"))
        delete_topic(scene.pair.target, scene.old)
        # A run creates the topics that are missing, and finds this one to be another than it copied to.
        scene.leads_on("target-recreated", f"{scene.old}.anew", scene.written)

    def test_target_written_by_others(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        scene.interrupt(up_to(12))
        scene.foreign(scene.old)
        scene.leads_on("target-diverged", f"{scene.old}.anew", scene.written)

    def test_target_not_empty(self, scene: Scene) -> None:
        create_topic(scene.pair.target, scene.old)
        scene.foreign(scene.old)
        scene.define(into=scene.old)
        scene.leads_on("target-not-empty", f"{scene.old}.anew", scene.written)

    def test_file_without_the_topic(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        scene.interrupt(up_to(12))
        scene.console.change({"A->B.topics": "something-else"})
        said = scene.repeat()
        assert said.reasons == {"topic-missing"}, said.document
        scene.console.change({"A->B.topics": scene.topic})
        done(scene.console.follow(said.failures[0], "backfill run"))
        assert scene.on_target(scene.old) == scene.written

    def test_source_topic_deleted(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        scene.interrupt(up_to(12))
        delete_topic(scene.pair.source, scene.topic)
        said = scene.repeat()
        assert (said.exit_code, said.reasons) == (1, {"topic-missing"}), said.document
        assert "the remaining records are lost" in said.failures[0]["action"]

    def test_running(self, scene: Scene) -> None:
        scene.define(into=scene.old)
        with hold_lock(scene.flow.ledger, flow="A->B#backfill-history", run_id="other", lease_seconds=3):
            said = scene.repeat()
        assert said.reasons == {"run-locked"}, said.document
        done(scene.repeat())


class TestIntoTheFlowsTopic:
    def test_flow_that_never_ran(self, scene: Scene) -> None:
        scene.define(end="offset 5")
        said = scene.repeat()
        assert (said.exit_code, said.reasons) == (1, {"topic-missing"}), said.document
        failure = said.failures[0]
        scene.console.follow(failure, "run")
        done(scene.console.follow(failure, "backfill run"))
        assert scene.on_target(scene.live) == [*scene.written, *scene.written[:5]]

    def test_interrupted_the_flow_names_it(self, scene: Scene) -> None:
        scene.interrupt_live()
        more = scene.produce(2, start=COUNT)
        failure = scene.console.stopped("unclean-start")
        done(scene.console.follow(failure, "backfill run"))
        scene.console.runs_on()
        assert scene.on_target(scene.live) == [*scene.written, *scene.written[:5], *more]

    def test_foreign_records_behind_an_idle_flow(self, scene: Scene) -> None:
        scene.console.copied()
        scene.foreign(scene.live)
        scene.define(end="offset 5")
        failure = scene.stopped("unclean-start")
        scene.console.follow(failure, "position set")
        done(scene.console.follow(failure, "backfill run"))
        scene.console.runs_on()
        assert scene.on_target(scene.live) == [*scene.written, b"foreign", *scene.written[:5]]

    def test_interrupted_flow(self, scene: Scene) -> None:
        with pytest.raises(DriverKilledError):
            scene.flow.run(runner=killed_after(up_to(12)))
        scene.define(end="offset 5")
        failure = scene.stopped("unclean-start")
        scene.console.follow(failure, "run")
        done(scene.console.follow(failure, "backfill run"))
        assert scene.on_target(scene.live) == [*scene.written, *scene.written[:5]]

    def test_interrupted_and_written_by_others(self, scene: Scene) -> None:
        scene.interrupt_live()
        scene.foreign(scene.live)
        failure = scene.stopped("target-diverged")
        scene.console.follow(failure, "position set")
        done(scene.console.follow(failure, "backfill run"))
        scene.console.runs_on()
        assert scene.on_target(f"{scene.live}.anew") == scene.written[:5]

    def test_interrupted_and_given_up(self, scene: Scene) -> None:
        scene.interrupt_live()
        assert scene.console.say("position", "set", "--topic", scene.topic, "--to", "20", "--yes").exit_code == 0
        scene.console.runs_on()
        failure = scene.stopped("target-diverged")
        done(scene.console.follow(failure, "backfill run"))
        scene.console.runs_on()
        assert scene.on_target(f"{scene.live}.anew") == scene.written[:5]

    def test_interrupted_and_the_topic_deleted(self, scene: Scene) -> None:
        scene.interrupt_live()
        delete_topic(scene.pair.target, scene.live)
        failure = scene.stopped("target-deleted")
        failure = scene.console.stopped("target-deleted")
        scene.console.follow(failure, "gaps recopy")
        scene.console.runs_on()
        assert scene.on_target(scene.live) == scene.written

    def test_another_backfill_that_was_interrupted(self, scene: Scene) -> None:
        scene.interrupt_live()
        scene.define("second", end="offset 2")
        failure = scene.stopped("unclean-start", "second")
        done(scene.console.follow(failure, "backfill run"))
        done(scene.repeat("second"))
        scene.console.runs_on()
        assert scene.on_target(scene.live) == [*scene.written, *scene.written[:5], *scene.written[:2]]

    def test_running_flow(self, scene: Scene) -> None:
        scene.console.copied()
        scene.define(end="offset 5")
        with hold_lock(scene.flow.ledger, flow="A->B", run_id="other", lease_seconds=3):
            said = scene.repeat()
        assert said.reasons == {"run-locked"}, said.document
        done(scene.repeat())
