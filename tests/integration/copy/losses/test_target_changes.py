"""A target that does not hold any more what was copied to it: noticed without new records, and continued as decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.topics.position_format import ClusterPair, Position
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.errors import (
    MirrorError,
    SourceClusterChangedError,
    TargetClusterChangedError,
    TargetDeletedError,
    TargetRecreatedError,
    TargetRenamedError,
    TargetTruncatedError,
)
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.console import Console
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, admin, consume, create_topic, delete_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic

#: Fields that version 0.1.0 did not store.
NAMELESS: dict[str, Any] = {"target_topic": None, "target_topic_id": None, "clusters": None}


class Scene:
    """A flow of one topic with one partition and ten copied records: nothing is new at the source."""

    def __init__(self, mirrored: MirroredTopic) -> None:
        self.mirrored, self.pair, self.topic, self.target = mirrored, mirrored.pair, mirrored.name, mirrored.remote
        self.written = mirrored.create(records(10))
        settings = {"A->B.groups": f"{self.topic}.*", "checkpoints.topic.replication.factor": "1"}
        self.flow = mirrored.flow(settings)
        self.console = Console(self.flow.path)
        assert self.run().errors == ()

    def produce(self, count: int, *, start: int = 0) -> list[Record]:
        return self.mirrored.produce(records(count, start=start))

    def run(self, flow: Flow | None = None) -> RunReport:
        """Topics first, as every scheduled run does it."""
        return (flow or self.flow).run()

    def on_target(self) -> list[bytes | None]:
        return values(self.mirrored.copied())

    def recreate(self, count: int = 0) -> None:
        """Delete the target topic and create it again, with records of somebody else."""
        delete_topic(self.pair.target, self.target)
        self.mirrored.create_remote()
        if count:
            self.mirrored.produce_remote(records(count, start=1_000))

    def position(self) -> Position:
        return self.flow.position(self.topic)

    def store(self, **changes: Any) -> None:
        """Store the position again with other fields."""
        former = self.position()
        with FlowClusters.connect(self.flow.config) as clusters:
            clusters.positions.write([replace(former, claim=(former.claim or 0) + 1, **changes)])

    def refused(self, kind: type[MirrorError], flow: Flow | None = None) -> MirrorError:
        """A run that stops the partition with this error; planning and observing say the same."""
        flow = flow or self.flow
        (planned,) = plan_flow(flow.config, RunOptions(), flow.ledger).problems
        assert isinstance(planned.error, kind), planned.error
        report = self.run(flow)
        (error,) = report.errors
        assert isinstance(error, kind), error
        assert (error.where.flow, error.where.topic, error.where.partition) == ("A->B", self.topic, 0)
        assert (report.exit_code, report.records) == (3, 0)
        (row,) = observe_flow(flow.config, flow.ledger).partitions
        assert row.reason == kind.reason
        return error

    def decide(self, decision: str) -> None:
        said = self.console.say("gaps", decision, "--all", "--yes")
        assert said.exit_code == 0, said.document
        assert all(each["error"] is None for each in said.document["decisions"])

    def causes(self) -> list[tuple[str, str]]:
        return [(gap.cause, gap.state) for gap in self.flow.ledger.gaps("A->B")]


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored)


def test_a_position_names_the_target_topic_its_id_and_both_clusters_and_is_completed_without(scene: Scene) -> None:
    complete = scene.position()
    assert complete.target_topic == scene.target
    assert complete.target_topic_id
    assert complete.clusters == ClusterPair(scene.pair.source.cluster_id, scene.pair.target.cluster_id)
    scene.store(**NAMELESS, last_record=None, target_record=None)

    report = scene.run()

    assert (report.errors, report.records) == ((), 0)
    last, copied = scene.position().last_record, scene.position().target_record
    assert (last.offset, copied) == (9, last)
    assert {name: getattr(scene.position(), name) for name in (*NAMELESS, "offset", "target_offset", "state")} == {
        name: getattr(complete, name) for name in (*NAMELESS, "offset", "target_offset", "state")
    }


class TestADeletedTargetTopic:
    @pytest.fixture(autouse=True)
    def _deleted(self, scene: Scene) -> None:
        delete_topic(scene.pair.target, scene.target)

    def test_it_stops_the_partition_and_is_not_created_again(self, scene: Scene) -> None:
        scene.refused(TargetDeletedError)

        assert scene.target not in admin(scene.pair.target).list_topics(timeout=10).topics
        assert scene.causes() == [("target-deleted", "open")]
        words = ["topics", "apply", "--config", str(scene.flow.path), "--flow", "A->B"]
        applied = CliRunner().invoke(app, words)
        assert f"{scene.target} was deleted on the target" in applied.output.replace("\n", " ")
        # Stopping leads on, too.
        scene.decide("stop")
        assert scene.run().exit_code == 0

    @pytest.mark.parametrize(("decision", "expected"), [("recopy", slice(0, 13)), ("accept", slice(10, 13))])
    def test_a_decision_leads_on(self, scene: Scene, decision: str, expected: slice) -> None:
        written = [*scene.written, *scene.produce(3, start=10)]
        scene.refused(TargetDeletedError)

        scene.decide(decision)

        assert scene.run().errors == ()
        assert scene.on_target() == [record.value for record in written[expected]]
        assert scene.run().errors == ()

    def test_it_is_noticed_without_names_in_the_position_too(self, scene: Scene) -> None:
        scene.store(**NAMELESS)

        scene.refused(TargetDeletedError)


class TestARecreatedTargetTopic:
    def test_it_stops_the_partition_also_if_it_is_of_equal_length(self, scene: Scene) -> None:
        scene.recreate()

        scene.refused(TargetRecreatedError)

        assert scene.on_target() == []
        assert scene.causes() == [("target-recreated", "open")]
        scene.mirrored.produce_remote(records(10, start=1_000))
        scene.produce(3, start=10)
        scene.refused(TargetRecreatedError)
        assert len(scene.on_target()) == 10

    def test_without_names_its_end_tells(self, scene: Scene) -> None:
        scene.store(**NAMELESS)
        scene.recreate(count=4)

        scene.refused(TargetTruncatedError)

    @pytest.mark.parametrize(("decision", "expected"), [("recopy", slice(0, 13)), ("accept", slice(10, 13))])
    def test_without_names_a_log_of_equal_length_is_recognized_by_its_records(
        self, scene: Scene, decision: str, expected: slice
    ) -> None:
        scene.store(**NAMELESS)
        scene.recreate(count=10)
        foreign = scene.on_target()
        error = scene.refused(TargetTruncatedError)
        assert f"the record of {scene.target} at target offset" in error.what
        written = [*scene.written, *scene.produce(3, start=10)]
        scene.refused(TargetTruncatedError)

        scene.decide(decision)

        assert scene.run().errors == ()
        assert scene.on_target() == [*foreign, *(record.value for record in written[expected])]
        assert scene.run().errors == ()

    @pytest.mark.parametrize(("decision", "expected"), [("recopy", slice(0, 13)), ("accept", slice(10, 13))])
    def test_a_decision_leads_on_behind_what_is_there(self, scene: Scene, decision: str, expected: slice) -> None:
        written = [*scene.written, *scene.produce(3, start=10)]
        scene.recreate(count=2)
        foreign = scene.on_target()
        scene.refused(TargetRecreatedError)

        scene.decide(decision)

        assert scene.run().errors == ()
        assert scene.on_target() == [*foreign, *(record.value for record in written[expected])]
        # The map speaks of the new topic alone.
        segments = scene.flow.ledger.segments("A->B", scene.topic, 0)
        assert [(row.source_first, row.target_first) for row in segments] == [(expected.start, 2)]

    def test_a_topic_without_copied_records_may_be_created_again(self, scene: Scene) -> None:
        scene.store(offset=-1, target_offset=0)
        scene.recreate()

        assert scene.run().errors == ()
        assert scene.on_target() == values(scene.written)


class TestAnotherTargetTopic:
    @pytest.fixture
    def renamed(self, scene: Scene) -> Flow:
        """The same flow by IdentityReplicationPolicy: the target topic has another name."""
        folder = scene.mirrored.folder / "renamed"
        folder.mkdir()
        policy = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
        flow = pair_flow(folder, scene.pair, topics=scene.topic, settings=policy)
        return replace(flow, ledger=scene.flow.ledger)

    def test_a_changed_policy_creates_no_empty_topic_and_stops_the_partition(self, scene: Scene, renamed: Flow) -> None:
        scene.refused(TargetRenamedError, renamed)

        assert scene.topic not in admin(scene.pair.target).list_topics(timeout=10).topics
        (undecided,) = renamed.sync_topics().plan.about_undecided
        assert f"records were copied to {scene.target}" in undecided
        assert "deleted" not in undecided

        # One as long as what was copied: by offsets alone it would fit.
        create_topic(scene.pair.target, scene.topic)
        produce(scene.pair.target, scene.topic, records(10, start=1_000))
        scene.produce(3, start=10)
        scene.refused(TargetRenamedError, renamed)
        assert len(consume(scene.pair.target, scene.topic)) == 10


@pytest.mark.parametrize(
    ("side", "error"), [("source", SourceClusterChangedError), ("target", TargetClusterChangedError)]
)
def test_a_position_of_another_cluster_stops_the_partition(scene: Scene, side: str, error: type[MirrorError]) -> None:
    clusters = scene.position().clusters
    scene.store(clusters=clusters._replace(**{side: "another-cluster"}))
    scene.produce(3, start=10)

    found = scene.refused(error)

    assert "another-cluster" in str(found)
    assert len(scene.on_target()) == 10

    scene.decide("accept")

    assert scene.run().errors == ()
    assert len(scene.on_target()) == 13


class TestGroupsOfAChangedTarget:
    """Faults in which groups were committed on an empty log, and called in sync."""

    @pytest.fixture
    def group(self, scene: Scene) -> str:
        """A group that has read seven of the ten records."""
        group = f"{scene.topic}-group"
        commit_offset(scene.pair.source, group, scene.topic, 7)
        return group

    def row(self, scene: Scene, verb: str, group: str, *, exit_code: int = 3) -> dict[str, Any]:
        """What a command about groups says of this one."""
        said = scene.console.say("groups", verb)
        assert said.exit_code == exit_code, (verb, said.document)
        (row,) = (row for row in said.document["rows"] if row["group"] == group)
        return dict(row)

    def test_none_is_in_sync_and_none_is_committed(self, scene: Scene, group: str, subtests: pytest.Subtests) -> None:
        changes: dict[str, Callable[[], object]] = {
            "deleted": lambda: delete_topic(scene.pair.target, scene.target),
            "recreated": lambda: scene.mirrored.create_remote(),
            "recreated with other records": lambda: scene.mirrored.produce_remote(records(10, start=1_000)),
            "of equal length, without names": lambda: scene.store(**NAMELESS),
        }
        for name, change in changes.items():
            change()
            with subtests.test(name):
                for verb in ("plan", "apply", "status"):
                    assert self.row(scene, verb, group)["reason"] == "target-changed"

                assert committed_offsets(scene.pair.target, group) == {}

    def test_none_is_translated_to_the_copy_of_a_source_topic_that_no_longer_exists(
        self, scene: Scene, group: str
    ) -> None:
        delete_topic(scene.pair.source, scene.topic)
        create_topic(scene.pair.source, scene.topic)
        scene.produce(8, start=100)
        commit_offset(scene.pair.source, group, scene.topic, 7)

        for verb in ("plan", "apply", "status"):
            assert self.row(scene, verb, group)["reason"] == "source-changed"
        assert committed_offsets(scene.pair.target, group) == {}

        (error,) = scene.run().errors
        assert error.reason == "source-recreated"
        scene.decide("accept")
        assert scene.run().errors == ()

        row = self.row(scene, "apply", group, exit_code=0)
        # The copies of the new topic begin at offset 10; MM2's rule may set the group some records back.
        assert 10 <= row["checkpoint"] <= 17
