"""If a copy begins anew on a target that does not hold the former copies, no reader of offset-syncs skips a record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import read_offset_syncs
from mirror_lib.config.topology import offset_syncs_topic
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.offsets.syncs import SyncPoint
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.console import Console
from tests.support.flows import Flow, make_flow
from tests.support.kafka import delete_topic, records
from tests.support.mirrored_topic import MirroredTopic


class Scene:
    """Ten records that were copied to a topic that is deleted, and three that were not copied yet."""

    def __init__(self, mirrored: MirroredTopic) -> None:
        self.topic = mirrored.name
        mirrored.create(records(10))
        self.flow: Flow = mirrored.flow()
        self.console = Console(self.flow.path)
        assert self.flow.run().errors == ()
        delete_topic(mirrored.target, mirrored.remote)
        mirrored.produce(records(3, start=10))
        assert [error.reason for error in self.flow.run().errors] == ["target-deleted"]

    def translated(self, flow: Flow | None = None) -> list[int | None]:
        """Where MirrorMaker 2 takes a group that has read 0, 5, 9, 10 and 13 records."""
        config = (flow or self.flow).config
        connection = Connection.from_settings(config.clients.offset_syncs_consumer)
        store, source = OffsetSyncStore(), TopicPartition(self.topic, 0)
        for sync in read_offset_syncs(connection, offset_syncs_topic(config)).entries:
            if (sync.topic, sync.partition) == source:
                store.add(source, SyncPoint(sync.upstream_offset, sync.downstream_offset))
        store.mark_loaded()
        return [store.translate(source, offset) for offset in (0, 5, 9, 10, 13)]

    def exact(self) -> list[int]:
        """The same by the offset map."""
        found = OffsetMap.of_segments(self.flow.ledger.segments("A->B", self.topic, 0))
        return [found.resume_at(offset).offset for offset in (0, 5, 9, 10, 13)]


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored)


@pytest.mark.parametrize(
    "words", [("gaps", "accept"), ("position", "set", "--to", "10")], ids=["accepted", "position set"]
)
def test_groups_begin_where_the_next_record_lands(scene: Scene, words: tuple[str, ...]) -> None:
    said = scene.console.say(*words, "--topic", scene.topic, "--yes")
    assert said.exit_code == 0, said.document

    assert scene.translated() == [0, 0, 0, 0, 0]

    assert scene.flow.run().errors == ()
    assert scene.exact() == [0, 0, 0, 0, 3]
    assert scene.translated() == [0, 0, 0, 0, 3]


def test_a_forgotten_position_takes_its_syncs_along(scene: Scene) -> None:
    assert scene.console.say("position", "reset", "--topic", scene.topic, "--yes").exit_code == 0

    assert scene.translated() == [0, 0, 0, 0, 0]


def test_a_new_flow_on_other_clusters_begins_without_syncs(scene: Scene) -> None:
    """As if the target had been another cluster until now."""
    with FlowClusters.connect(scene.flow.config) as clusters:
        position = clusters.positions.read_all().positions[TopicPartition(scene.topic, 0)].position
        assert position.clusters is not None
        former = position.clusters._replace(target="another-cluster")
        clusters.positions.write([replace(position, clusters=former, claim=(position.claim or 0) + 1)])
    scene.flow.ledger.cluster_pairs.replace("A->B", *former, by="test")

    said = scene.console.say("clusters", "accept", "--new", "--yes")

    assert said.exit_code == 0, said.document
    assert scene.translated() == [0, 0, 0, 0, 0]


class TestAnotherTargetCluster:
    """Its position topic is empty; the source still has the offset-syncs of the former target."""

    def flow(self, scene: Scene, mirrored: MirroredTopic, first_start: str, *, new_ledger: bool) -> Flow:
        # The source stands in for the other target.
        source = mirrored.pair.source.bootstrap_servers
        folder = mirrored.folder / "other"
        folder.mkdir()
        ledger = folder if new_ledger else mirrored.folder
        settings = {
            "mirror.ledger.url": f"sqlite:///{ledger}/ledger.sqlite3",
            "mirror.first.start": first_start,
            "offset.storage.topic": f"positions-{scene.topic}",
        }
        return make_flow(folder, source, source, topics=scene.topic, settings=settings)

    def test_an_operator_accepts_it(self, scene: Scene, mirrored: MirroredTopic) -> None:
        flow = self.flow(scene, mirrored, "latest", new_ledger=False)

        assert Console(flow.path).say("clusters", "accept", "--new", "--yes").exit_code == 0

        assert scene.translated(flow) == [0, 0, 0, 0, 0]

    def test_an_operator_accepts_it_next_to_positions_on_the_present_clusters(self, scene: Scene) -> None:
        """The ledger is an older one: its ids are those of the former target, and the copy continues."""
        assert scene.console.say("position", "set", "--topic", scene.topic, "--to", "10", "--yes").exit_code == 0
        assert scene.flow.run().records == 3
        before = scene.translated()
        scene.flow.ledger.cluster_pairs.replace("A->B", "former-source", "former-target", by="test")

        assert scene.console.say("clusters", "accept", "--new", "--yes").exit_code == 0

        assert scene.translated() == before

    def test_a_position_is_set_before_the_first_run(self, scene: Scene, mirrored: MirroredTopic) -> None:
        flow = self.flow(scene, mirrored, "earliest", new_ledger=True)
        console = Console(flow.path)
        flow.sync_internal_topics()
        assert console.say("topics", "apply").exit_code == 0

        assert console.say("position", "set", "--topic", scene.topic, "--to", "11", "--yes").exit_code == 0

        assert scene.translated(flow) == [0, 0, 0, 0, 0]

    @pytest.mark.parametrize(
        ("first_start", "translated"),
        [("latest", [0, 0, 0, 0, 0]), ("offset 11", [0, 0, 0, 0, 2])],
        ids=["nothing to copy", "records to copy"],
    )
    def test_the_ledger_is_new_as_well(
        self, scene: Scene, mirrored: MirroredTopic, first_start: str, translated: list[int]
    ) -> None:
        flow = self.flow(scene, mirrored, first_start, new_ledger=True)

        assert flow.run().errors == ()

        assert scene.translated(flow) == translated
