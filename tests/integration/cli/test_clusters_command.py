"""An alias that names another cluster than before: nothing that was stored is believed until an operator decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.cluster.topics.position_format import ClusterPair
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import ConfigurationError, SourceClusterChangedError, TargetClusterChangedError
from mirror_lib.planning.flow_clusters import FlowClusters
from tests.support.clusters import KafkaPair
from tests.support.console import Console
from tests.support.flows import Flow, make_flow, pair_flow
from tests.support.kafka import admin, consume, create_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic


class Scene:
    """Ten copied records, and another file whose aliases name the clusters the other way round."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic = pair, topic
        create_topic(pair.source, topic)
        self.flow = pair_flow(folder, pair, topics=topic)
        produce(pair.source, topic, records(10))
        assert self.flow.run().errors == ()
        swapped = folder / "swapped"
        swapped.mkdir()
        create_topic(pair.target, topic)
        produce(pair.target, topic, records(5))
        settings = {"mirror.ledger.url": f"sqlite:///{folder}/ledger.sqlite3"}
        servers = pair.target.bootstrap_servers, pair.source.bootstrap_servers
        self.swapped = replace(make_flow(swapped, *servers, topics=topic, settings=settings), ledger=self.flow.ledger)

    def say(self, *words: str, flow: Flow | None = None) -> tuple[int, dict[str, Any]]:
        said = Console((flow or self.swapped).path).say(*words)
        return said.exit_code, dict(said.document)


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder)


#: Commands that use the ledger's map or positions.
_BELIEVING = (
    "groups apply",
    "observe",
    "plan",
    "groups plan",
    "groups status",
    "verify",
    "map rebuild",
    "map show",
    "translate --partition 0 --offset 3",
    "translate --partition 0 --offset 3 --to-source",
    "position set --to earliest --yes",
    "topics plan",
    "topics apply",
    "configs plan",
    "configs apply",
    "run",
)


def test_no_command_believes_the_ledger_of_other_clusters(scene: Scene, subtests: pytest.Subtests) -> None:
    for words in map(str.split, _BELIEVING):
        named = ("--topic", scene.topic) if words[0] in ("position", "translate") else ()
        with subtests.test(" ".join(words)):
            code, told = scene.say(*words, *named)

            assert (code, told["error"]["reason"]) == (3, "target-cluster-changed")
            assert "mirror clusters accept" in told["error"]["action"]
            assert f"A.{scene.topic}" not in admin(scene.pair.source).list_topics(timeout=10).topics


def test_show_compares_the_ids_and_nothing_happens_without_consent(scene: Scene) -> None:
    ids = [scene.pair.source.cluster_id, scene.pair.target.cluster_id]

    code, told = scene.say("clusters", "show", flow=scene.flow)
    assert code == 0
    assert [(row["cluster_id"], row["in_the_ledger"]) for row in told["clusters"]] == list(zip(ids, ids, strict=True))

    code, told = scene.say("clusters", "show")
    assert code == 3
    assert [(row["cluster_id"], row["in_the_ledger"]) for row in told["clusters"]] == list(
        zip(ids[::-1], ids, strict=True)
    )

    code, told = scene.say("clusters", "accept", "--new")
    assert (code, told["done"]) == (1, False)
    with pytest.raises(TargetClusterChangedError):
        scene.swapped.run()


def test_a_new_flow_begins_at_its_first_record(scene: Scene) -> None:
    code, told = scene.say("clusters", "accept", "--new", "--yes")

    assert (code, told["done"]) == (0, True)
    report = scene.swapped.run()
    assert (report.errors, report.records) == ((), 5)
    assert len(consume(scene.pair.source, f"A.{scene.topic}")) == 5
    # The earlier clusters are refused now.
    with pytest.raises((SourceClusterChangedError, TargetClusterChangedError)):
        scene.flow.run()
    (entry,) = scene.flow.ledger.audits.newest("A->B")
    assert (entry.action, entry.subject) == ("clusters-accept", "new")


def test_the_same_flow_continues_at_the_same_offsets(scene: Scene) -> None:
    """As if both clusters had got new ids: the positions and the ledger name others."""
    with FlowClusters.connect(scene.flow.config) as clusters:
        stored = clusters.positions.read_all().positions.values()
        clusters.positions.write(
            replace(
                each.position, clusters=ClusterPair("old-1", "old-2"), claim=2, topic_id="old", target_topic_id="old"
            )
            for each in stored
        )
    scene.flow.ledger.cluster_pairs.replace("A->B", "old-1", "old-2", by="test")
    with pytest.raises(TargetClusterChangedError):
        scene.flow.run()

    code, told = scene.say("clusters", "accept", "--same", "--yes", flow=scene.flow)

    assert (code, told["change"]["positions_kept"]) == (0, 1)
    produce(scene.pair.source, scene.topic, records(3, start=10))
    report = scene.flow.run()
    assert (report.errors, report.records) == ((), 3)
    assert len(consume(scene.pair.target, f"A.{scene.topic}")) == 13


class TestOneClusterUnderTwoAddresses:
    def flow(self, scene: Scene, folder: Path, topics: str, **settings: str) -> Flow:
        own = folder / "one"
        own.mkdir()
        servers = scene.pair.source.bootstrap_servers
        # Another spelling of the same address.
        return make_flow(own, servers, servers.replace("localhost", "127.0.0.1"), topics=topics, settings=settings)

    def test_a_flow_that_would_copy_its_own_copies_is_refused(self, scene: Scene, tmp_path: Path) -> None:
        flow = self.flow(scene, tmp_path, f".*{scene.topic}")

        for refused in (flow.run, flow.sync_topics, lambda: plan_flow(flow.config, RunOptions(), flow.ledger)):
            with pytest.raises(ConfigurationError, match="one cluster") as caught:
                refused()
            assert scene.topic in caught.value.what

        assert f"A.{scene.topic}" not in admin(scene.pair.source).list_topics(timeout=10).topics

    def test_topics_may_be_copied_within_a_cluster(self, scene: Scene, tmp_path: Path) -> None:
        flow = self.flow(scene, tmp_path, scene.topic)

        reports = [flow.run() for _ in range(2)]

        assert [each.records for each in reports] == [10, 0]
        # It is no backup, which nobody would see otherwise.
        assert all("A and B point to the same cluster" in "".join(each.warnings) for each in reports)
        assert len(consume(scene.pair.source, f"A.{scene.topic}")) == 10
