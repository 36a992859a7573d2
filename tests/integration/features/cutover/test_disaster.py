"""A disaster as docs/runbooks.md describes it: the source is lost with what was not copied, and comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.loader import load
from mirror_lib.copy.run_options import RunReport
from mirror_lib.errors import ConfigurationError, PlanChangedError
from mirror_lib.features.cutover.failback.after_disaster import apply_return
from mirror_lib.features.cutover.failback.return_plan import ReturnPlan, plan_return
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.ledger.handovers import enabled_opposite_of, load_flow_as_it_runs
from tests.support.brokers.acls import acl, add_acls
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair, start_together
from tests.support.console import Console
from tests.support.cutovers import IDENTITY, Migration, commit, committed, numbered, numbers
from tests.support.flows import Flow, make_flow
from tests.support.interruptions import interrupted, killed_after, up_to
from tests.support.kafka import Record, add_partitions, create_topic, produce
from tests.support.mirrored_topic import MirroredTopic
from tests.support.names import unique_name

PARTITIONS = 2
#: Copied before the disaster; written to the source and never copied; written to the target by those who failed over.
COPIED, LOST, AFTERWARDS = 60, 14, 20
SETTINGS = {
    "replication.policy.class": IDENTITY,
    "sync.group.offsets.enabled": "true",
    "mirror.acls.stage.writes.enabled": "true",
    "checkpoints.topic.replication.factor": "1",
    "A.offset.storage.replication.factor": "1",
    "A.offset.storage.partitions": "5",
    "B->A.mirror.failback": "true",
}


class Scene:
    """A flow whose source is lost, and a person at the console."""

    def __init__(self, folder: Path, pair: KafkaPair, topic: str) -> None:
        self.folder, self.pair, self.topic, self.group = folder, pair, topic, f"g-{topic}"
        create_topic(pair.source, topic, partitions=PARTITIONS)
        produce(pair.source, topic, numbered(0, COPIED, PARTITIONS))
        commit(pair.source, self.group, topic, {0: 10, 1: 20})
        add_acls(pair.source, acl(topic, "WRITE", principal="User:app"))
        self.young = f"{topic}-young"
        self.topics = f"{topic}(-young)?"
        self.there = self.configured({"B->A.enabled": "true", "B->A.topics": self.topics})

    def configured(self, settings: dict[str, str]) -> Flow:
        """The file as it is from now on."""
        servers = self.pair.source.bootstrap_servers, self.pair.target.bootstrap_servers
        return make_flow(self.folder, *servers, topics=self.topics, settings={**SETTINGS, **settings})

    def say(self, *words: str) -> Mapping[str, Any]:
        """A command that has to succeed."""
        code, told = self.ask(*words)
        assert code == 0, told
        return told

    def ask(self, *words: str) -> tuple[int, Mapping[str, Any]]:
        """A command, with its exit code and document."""
        said = Console(self.there.path).say(*words)
        return said.exit_code, said.document

    def lose_source(self) -> None:
        """What nobody can copy any more is written, and all brokers are gone."""
        produce(self.pair.source, self.topic, numbered(COPIED, COPIED + LOST, PARTITIONS))
        self.pair.source.kill_all()

    def fail_over(self) -> None:
        """Writers are at work on the target, and a group has read on there."""
        produce(self.pair.target, self.topic, numbered(100, 100 + AFTERWARDS, PARTITIONS))
        commit(self.pair.target, self.group, self.topic, {0: 35, 1: 36})

    def plan_return(self) -> ReturnPlan:
        """What somebody looks at before agreeing."""
        file, flow = load_flow_as_it_runs(self.there.path, "A->B")
        return plan_return(flow, enabled_opposite_of(file, flow), [self.topics])

    def carry_out(self, plan: ReturnPlan) -> ReturnPlan:
        """What was agreed to."""
        return apply_return(
            plan.flow, plan.opposite, self.there.ledger, [self.topics], agreed=plan.fingerprint, by="a test"
        )

    @property
    def migration(self) -> Migration:
        """Both flows, by the file as it is now."""
        return Migration(self.pair, self.there, load(self.there.path))

    def values(self, *, target: bool = True) -> list[bytes]:
        """What the topic holds."""
        return self.migration.values(self.topic, target=target)

    def go_home(self) -> None:
        """A planned cutover by the flow back."""
        moving = self.migration
        moving.finish(moving.define("home", self.topic, flow="B->A"))

    def run(self, flow: str) -> RunReport:
        """A run, by what the file and the ledger say now."""
        _, config = load_flow_as_it_runs(self.there.path, flow)
        return Flow(config, self.there.ledger, self.there.path).run()


@pytest.fixture(scope="module")
def source(brokers_folder: Path, kafka_jars: Path) -> Iterator[KafkaCluster]:
    """The cluster that tests lose; it does not always run."""
    folder = brokers_folder / unique_name("lost")
    # A broker that was killed is let in again when its session has ended.
    soon = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    cluster = KafkaCluster("lost", directory=folder, jars=kafka_jars, overrides={**FAST_HOUSEKEEPING, **soon})
    with start_together(cluster):
        yield cluster


@pytest.fixture
def scene(source: KafkaCluster, mirrored: MirroredTopic) -> Iterator[Scene]:
    source.start()
    made = Scene(mirrored.folder, KafkaPair(source, mirrored.target), mirrored.name)
    made.there.run()
    made.say("groups", "apply", "--flow", "A->B")
    made.say("acls", "apply", "--flow", "A->B")
    yield made
    made.there.ledger.close()


def test_a_source_is_lost_clients_fail_over_and_go_home_by_a_planned_cutover(scene: Scene) -> None:
    # Given a source that is lost with records that were not copied
    scene.lose_source()

    # Then the ledger tells what the last run left, and how far each partition was copied
    (backlog,) = scene.say("status", "--flow", "A->B")["backlogs"]
    assert backlog["left"] == 0
    positions = scene.say("position", "show", "--flow", "A->B")["positions"]
    assert {(row["partition"], row["next_offset"], row["target_offset"]) for row in positions} == {
        (0, 30, 30),
        (1, 30, 30),
    }
    # The group stands where it stood, and the map answers for one that was never committed
    assert committed(scene.pair.target, scene.group, scene.topic, PARTITIONS) == {0: 10, 1: 20}
    asked = ["--topic", scene.topic, "--partition", "0", "--offset", "10"]
    (landing,) = scene.say("translate", "--flow", "A->B", *asked)["translations"]
    assert landing["target_offset"] == 10
    # The grants come from the ledger
    assert len(scene.say("acls", "release", "--flow", "A->B")["changed"]) == 1

    # When clients write to the target, the source is back, and the topics are handed over to the flow back
    scene.fail_over()
    scene.pair.source.start()
    # The plan of a run tells how much
    assert sum(each["end"] - each["start"] for each in scene.say("plan", "--flow", "A->B")["partitions"]) == LOST
    looked_at = scene.say("cutover", "after-disaster", "--flow", "A->B", "--dry-run")
    handed_over = scene.say("cutover", "after-disaster", "--flow", "A->B", "--yes", "--note", "fire in the cellar")

    # Then the loss is told and kept
    assert (looked_at["done"], handed_over["done"]) == (False, True)
    assert looked_at["partitions"] == handed_over["partitions"]
    assert [(each["left_behind"], each["came_since"]) for each in handed_over["partitions"]] == [(7, 10), (7, 10)]
    gaps = scene.there.ledger.gaps("A->B")
    assert {(gap.cause, gap.first_offset, gap.next_offset, gap.note) for gap in gaps} == {
        ("disaster", 30, 37, "fire in the cellar")
    }
    # And the flow copies nothing more, while the flow back brings home what came since
    assert scene.run("A->B").records == 0
    assert scene.run("B->A").records == AFTERWARDS
    assert scene.values(target=False) == numbers((0, COPIED + LOST), (100, 100 + AFTERWARDS))
    assert scene.values() == numbers((0, COPIED), (100, 100 + AFTERWARDS))

    # When clients go home
    scene.go_home()

    # Then the group, which had read five and six of the records that came since, is behind the lost ones on the source
    assert committed(scene.pair.source, scene.group, scene.topic, PARTITIONS) == {0: 30 + 7 + 5, 1: 30 + 7 + 6}
    # And the flow goes on
    produce(scene.pair.source, scene.topic, numbered(200, 210, PARTITIONS))
    assert scene.run("A->B").records == 10
    assert scene.run("B->A").records == 0
    assert scene.values() == numbers((0, COPIED), (100, 100 + AFTERWARDS), (200, 210))


def test_what_an_interrupted_run_had_copied_does_not_come_home_as_if_it_were_new(scene: Scene) -> None:
    # Given a run that died with its source: the target holds more than the position says
    produce(scene.pair.source, scene.topic, numbered(COPIED, COPIED + LOST, PARTITIONS))
    interrupted(scene.there, killed_after(up_to(34)))
    copied = scene.values()
    assert COPIED < len(copied) < COPIED + LOST
    scene.pair.source.kill_all()
    scene.fail_over()
    scene.pair.source.start()

    told = scene.say("cutover", "after-disaster", "--flow", "A->B", "--yes")

    # Each partition had come to offset 34 of 37
    assert [(each["left_behind"], each["came_since"]) for each in told["partitions"]] == [(3, 10), (3, 10)]
    assert scene.run("B->A").records == AFTERWARDS
    assert scene.values(target=False) == numbers((0, COPIED + LOST), (100, 100 + AFTERWARDS))
    # Its records are in the map: the comparison on the way home misses none
    scene.go_home()
    assert committed(scene.pair.source, scene.group, scene.topic, PARTITIONS) == {0: 35 + 3, 1: 36 + 3}


def test_a_plan_is_made_anew_if_somebody_writes_to_the_source_and_is_not_carried_out_twice(scene: Scene) -> None:
    # Given a plan, and a writer whom nobody has stopped
    scene.lose_source()
    scene.fail_over()
    scene.pair.source.start()
    plan = scene.plan_return()
    produce(scene.pair.source, scene.topic, numbered(300, 304, PARTITIONS))

    with pytest.raises(PlanChangedError, match="18 offsets were never copied"):
        scene.carry_out(plan)
    assert scene.there.ledger.handovers.handed_over() == ()

    # What is written to the target meanwhile is no reason to refuse
    plan = scene.plan_return()
    produce(scene.pair.target, scene.topic, numbered(400, 404, PARTITIONS))
    assert not scene.carry_out(plan).errors
    assert scene.run("B->A").records == AFTERWARDS + 4

    # When somebody who looked at the same time is slower, and the flow back has begun
    with pytest.raises(ConfigurationError, match="copies no topic"):
        scene.carry_out(plan)

    # Then nothing comes home twice
    assert scene.run("B->A").records == 0
    written = numbers((0, COPIED + LOST), (100, 100 + AFTERWARDS), (300, 304), (400, 404))
    assert scene.values(target=False) == written


def test_what_no_run_had_made_on_the_target_yet_does_not_keep_the_others_from_coming_home(scene: Scene) -> None:
    # Given a topic, and a partition of another one, that the source had just got when it was lost
    create_topic(scene.pair.source, scene.young, partitions=1)
    produce(scene.pair.source, scene.young, numbered(0, 5))
    add_partitions(scene.pair.source, scene.topic, PARTITIONS + 1)
    produce(
        scene.pair.source, scene.topic, [Record(b"%08d" % number, partition=PARTITIONS) for number in range(70, 74)]
    )
    scene.lose_source()
    scene.fail_over()
    scene.pair.source.start()

    told = scene.say("cutover", "after-disaster", "--flow", "A->B", "--yes")

    # Then the topic stays with its flow, and the partition is told as lost
    assert told["staying"] == [scene.young]
    assert [(each["left_behind"], each["came_since"]) for each in told["partitions"]] == [(7, 10), (7, 10), (4, 0)]
    assert scene.run("B->A").records == AFTERWARDS
    assert scene.run("A->B").records == 5
    # And when the target gets that partition too, it comes home behind what the source has there
    add_partitions(scene.pair.target, scene.topic, PARTITIONS + 1)
    produce(scene.pair.target, scene.topic, [Record(b"%08d" % 500, partition=PARTITIONS)])
    assert scene.run("B->A").records == 1
    assert scene.values(target=False) == numbers((0, COPIED + LOST), (70, 74), (100, 100 + AFTERWARDS), (500, 501))


def test_without_a_way_back_in_the_file_nothing_is_handed_over(scene: Scene) -> None:
    scene.configured({"B->A.enabled": "false"})

    code, told = scene.ask("cutover", "after-disaster", "--flow", "A->B", "--yes")

    assert (code, told["error"]["reason"]) == (2, "configuration")
    assert "B->A" in told["error"]["what"]
    assert scene.there.ledger.handovers.handed_over() == ()
