"""What stops a partition names a way on, and that way, taken from the command line, ends with a flow that runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.loader import load
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.clusters import KafkaPair
from tests.support.console import Console, copies_in_process
from tests.support.flows import Flow, copy_here, pair_flow
from tests.support.interruptions import interrupted, killed_after, up_to
from tests.support.kafka import (
    Record,
    add_partitions,
    consume,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    records,
    values,
    watermarks,
)
from tests.support.mirrored_topic import MirroredTopic

#: Records of a batch that nobody looks into.
BATCH = 136


pytestmark = pytest.mark.usefixtures("without_spark")


class Scene:
    """A flow of one topic and an operator at the console."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic, self.remote = pair, topic, f"A.{topic}"
        create_topic(pair.source, topic)
        self.flow: Flow = pair_flow(folder, pair, topics=topic)
        self.console = Console(self.flow.path)

    def produce(self, count: int, *, start: int = 0) -> list[bytes | None]:
        return values(produce(self.pair.source, self.topic, records(count, start=start)))

    def on_target(self, topic: str | None = None) -> list[bytes | None]:
        return values(consume(self.pair.target, topic or self.remote))

    def foreign(self, topic: str | None = None) -> list[bytes | None]:
        return values(produce(self.pair.target, topic or self.remote, [Record(value=b"foreign")]))

    def position(self) -> Position:
        return self.flow.position(self.topic)

    def rename(self) -> str:
        """Copy under another name, as messages advise."""
        self.console.change({"mirror.topics.rename": f"{self.topic}:{self.topic}.anew"})
        return f"{self.topic}.anew"

    def store(self, position: Position) -> None:
        self.flow.sync_internal_topics()
        with FlowClusters.connect(self.flow.config) as clusters:
            clusters.positions.write([position])


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder)


class TestTargetDiverged:
    @pytest.fixture
    def written(self, scene: Scene) -> list[bytes | None]:
        written = scene.produce(10)
        scene.console.copied()
        written += scene.produce(20, start=10)
        interrupted(scene.flow, killed_after(up_to(20)))
        scene.foreign()
        return written

    def test_setting_the_position(self, scene: Scene, written: list[bytes | None]) -> None:
        """The command as it stands in the message: after the last record that the target has."""
        scene.console.leads_on("target-diverged", "position set")
        assert scene.on_target() == [*written[:20], b"foreign", *written[20:]]

    def test_another_name(self, scene: Scene, written: list[bytes | None]) -> None:
        scene.console.stopped("target-diverged")
        anew = scene.rename()
        scene.console.leads_on("target-renamed", "gaps recopy")
        assert scene.on_target(anew) == written


class TestTargetNotEmpty:
    @pytest.fixture
    def written(self, scene: Scene) -> list[bytes | None]:
        written = scene.produce(10)
        create_topic(scene.pair.target, scene.remote)
        scene.foreign()
        scene.console.stopped("target-not-empty")
        return written

    def test_appending(self, scene: Scene, written: list[bytes | None]) -> None:
        scene.console.change({"mirror.target.existing": "append"})
        scene.console.runs_on()
        assert scene.on_target() == [b"foreign", *written]

    def test_another_name(self, scene: Scene, written: list[bytes | None]) -> None:
        anew = scene.rename()
        scene.console.runs_on()
        assert scene.on_target(anew) == written

    def test_deleting_the_topic(self, scene: Scene, written: list[bytes | None]) -> None:
        delete_topic(scene.pair.target, scene.remote)
        scene.console.runs_on()
        assert scene.on_target() == written


class TestAnInterruptedCopyThatTheTargetHasDeleted:
    def test_setting_the_position(self, scene: Scene) -> None:
        written = scene.produce(10)
        scene.console.copied()
        written += scene.produce(20, start=10)
        interrupted(scene.flow, killed_after(up_to(20)))
        delete_records(scene.pair.target, scene.remote, before=20)
        scene.console.leads_on("unclean-start", "position set", "--topic", scene.topic, "--to", "20")
        assert scene.on_target() == written[20:]


class TestMirrorMakersPositionWithoutAnOffsetSync:
    @pytest.fixture
    def written(self, scene: Scene) -> list[bytes | None]:
        written = scene.produce(30)
        create_topic(scene.pair.target, scene.remote)
        produce(scene.pair.target, scene.remote, records(20))
        scene.store(Position(scene.topic, 0, 19))
        return written

    def test_setting_the_position(self, scene: Scene, written: list[bytes | None]) -> None:
        scene.console.leads_on("unclean-start", "position set", "--topic", scene.topic, "--to", "20")
        assert scene.on_target() == written

    def test_another_name(self, scene: Scene, written: list[bytes | None]) -> None:
        scene.console.stopped("unclean-start")
        anew = scene.rename()
        # Its position does not name the topic that records went to.
        scene.console.leads_on("target-deleted", "gaps recopy")
        assert scene.on_target(anew) == written


class TestAnInterruptedMerge:
    @pytest.fixture
    def topics(self, scene: Scene) -> list[str]:
        topics = [f"{scene.topic}-{name}" for name in ("first", "second")]
        for topic in topics:
            create_topic(scene.pair.source, topic)
            produce(scene.pair.source, topic, records(10))
        scene.console.change({"A->B.topics": ",".join(topics), "mirror.topics.merge.enabled": "true"})
        self.merge(scene, topics, f"{scene.topic}.merged")
        interrupted(replace(scene.flow, config=load(scene.flow.path).flow("A->B")), killed_after())
        return topics

    def merge(self, scene: Scene, topics: list[str], into: str) -> None:
        scene.console.change({"mirror.topics.rename": ",".join(f"{each}:{into}" for each in topics)})

    def test_setting_the_positions(self, scene: Scene, topics: list[str]) -> None:
        failure = scene.console.stopped("unclean-start")
        for topic in topics:
            scene.console.follow(failure, "position set", "--topic", topic, "--to", "latest")
        scene.console.runs_on()

    def test_another_name(self, scene: Scene, topics: list[str]) -> None:
        scene.console.stopped("unclean-start")
        self.merge(scene, topics, f"{scene.topic}.anew")
        scene.console.runs_on()
        assert sorted(map(str, scene.on_target(f"{scene.topic}.anew"))) == sorted(
            str(each.value) for each in records(10) * 2
        )


class TestAPositionThatCannotBeRead:
    def test_setting_the_position(self, scene: Scene) -> None:
        written = scene.produce(10)
        scene.console.copied()
        garble(scene)
        failure = scene.console.stopped("unclean-start")
        scene.produce(5, start=10)
        scene.console.follow(failure, "position set", "--topic", scene.topic, "--to", "10")
        scene.console.runs_on()
        assert scene.on_target() == [*written, *values(records(5, start=10))]


def garble(scene: Scene) -> None:
    topic = scene.flow.config.offset_storage_topic
    (found,) = [each for each in consume(scene.pair.target, topic) if each.key and scene.topic.encode() in each.key][
        -1:
    ]
    produce(scene.pair.target, topic, [Record(key=found.key, value=b"{", partition=found.partition)])


class TestTopology:
    @pytest.fixture
    def other(self, scene: Scene) -> str:
        other = f"{scene.topic}-other"
        create_topic(scene.pair.source, other)
        produce(scene.pair.source, other, records(5))
        scene.console.change(
            {
                "A->B.topics": f"{scene.topic}.*",
                "mirror.topics.rename": f"{scene.topic}:{scene.topic}.one, {other}:{scene.topic}.one",
            }
        )
        scene.produce(10)
        said = scene.console.run()
        assert (said.exit_code, said.reasons, len(said.failures)) == (3, {"topology"}, 2), said.document
        return other

    def test_excluding_a_topic(self, scene: Scene, other: str) -> None:
        scene.console.change({"topics.exclude": other})
        scene.console.runs_on()
        assert len(scene.on_target(f"{scene.topic}.one")) == 10

    def test_another_name(self, scene: Scene, other: str) -> None:
        scene.console.change({"mirror.topics.rename": f"{scene.topic}:{scene.topic}.one"})
        scene.console.runs_on()
        assert len(scene.on_target(f"{scene.topic}.one")) == 10
        assert len(scene.on_target(f"A.{other}")) == 5

    def test_merging(self, scene: Scene, other: str) -> None:
        scene.console.change({"mirror.topics.merge.enabled": "true"})
        scene.console.runs_on()
        assert len(scene.on_target(f"{scene.topic}.one")) == 15

    def test_a_target_topic_with_fewer_partitions(self, scene: Scene) -> None:
        written = scene.produce(5)
        scene.console.copied()
        add_partitions(scene.pair.source, scene.topic, 2)
        written += values(produce(scene.pair.source, scene.topic, records(5, partition=1)))
        said = scene.console.say("run", "--no-topics")
        assert (said.exit_code, said.reasons) == (3, {"topology"})
        scene.console.follow(said.failures[0], "topics apply")
        scene.console.runs_on()
        assert scene.on_target() == written


class TestTopicMissing:
    def test_making_the_topics(self, scene: Scene) -> None:
        written = scene.produce(5)
        scene.flow.sync_internal_topics()
        said = scene.console.say("run", "--no-topics")
        assert (said.exit_code, said.reasons) == (1, {"topic-missing"})
        scene.console.follow(said.failures[0], "topics apply")
        scene.console.runs_on()
        assert scene.on_target() == written


class TestAnotherCluster:
    def test_copying_again(self, scene: Scene) -> None:
        """A position that names another target, where the ledger is new."""
        scene.produce(10)
        scene.console.copied()
        scene.produce(5, start=10)
        position = scene.position()
        assert position.clusters is not None
        named = position.clusters._replace(target="another-cluster")
        scene.store(replace(position, clusters=named, claim=2))
        scene.console.leads_on("target-cluster-changed", "gaps recopy")
        assert len(scene.on_target()) == 25


class TestATargetThatChanged:
    @pytest.fixture
    def renamed(self, scene: Scene) -> str:
        scene.produce(10)
        scene.console.copied()
        scene.produce(5, start=10)
        return scene.rename()

    def test_a_new_name(self, scene: Scene, renamed: str) -> None:
        scene.console.leads_on("target-renamed", "gaps accept")
        assert len(scene.on_target(renamed)) == 5

    def test_restoring_the_name(self, scene: Scene, renamed: str) -> None:
        scene.console.stopped("target-renamed")
        scene.console.change({"mirror.topics.rename": ""})
        scene.console.runs_on()
        assert len(scene.on_target()) == 15


class TestBothTopicsGone:
    def test_copying_again_once(self, scene: Scene) -> None:
        """Also where nothing was copied: the decision is one for the topic, and needs no topic on the target."""
        add_partitions(scene.pair.source, scene.topic, 2)
        scene.produce(10)
        scene.console.copied()
        delete_topic(scene.pair.source, scene.topic)
        create_topic(scene.pair.source, scene.topic, partitions=2)
        anew = produce(scene.pair.source, scene.topic, [*records(3), *records(5, partition=1)])
        scene.console.run()
        delete_topic(scene.pair.target, scene.remote)
        scene.console.run()

        assert scene.console.say("gaps", "recopy", "--all", "--yes").exit_code == 0
        scene.console.runs_on()
        assert sorted(scene.on_target()) == sorted(values(anew))


class TestTargetTruncated:
    @pytest.mark.parametrize(("decision", "offsets"), [("accept", range(10, 15)), ("recopy", range(15))])
    def test_deciding(self, scene: Scene, decision: str, offsets: range) -> None:
        """As with a disk that was restored: the log ends before what was copied."""
        scene.produce(10)
        scene.console.copied()
        written = values(consume(scene.pair.source, scene.topic)) + scene.produce(5, start=10)
        position = scene.position()
        scene.store(replace(position, target_offset=50, claim=(position.claim or 0) + 1))
        scene.console.leads_on("target-truncated", f"gaps {decision}")
        assert scene.on_target()[10:] == [written[number] for number in offsets]


class TestOffsetOutOfRange:
    def test_running_again(self, scene: Scene) -> None:
        """Records are deleted between plan and copy."""
        written = scene.produce(20)

        def deleted_meanwhile(job: CopyJob) -> list[PartitionResult]:
            delete_records(scene.pair.source, scene.topic, before=5)
            return copy_here(job)

        with copies_in_process(deleted_meanwhile):
            scene.console.stopped("offset-out-of-range")
        scene.console.leads_on("retention-gap", "gaps accept")
        assert scene.on_target() == written[5:]


class TestOversizedBatch:
    @pytest.mark.parametrize(("place", "count"), [("0", BATCH + 1), (str(BATCH), 1)])
    def test_setting_the_position(self, scene: Scene, place: str, count: int) -> None:
        """A copy that begins in the middle of a batch that nobody may decompress."""
        # Zeros: some kilobytes on the way, and above 128 MiB when they are decompressed.
        batch = [Record(value=bytes(1 << 20))] * BATCH
        at_once = {"compression_type": "zstd", "linger_ms": 10_000, "batch_size": 1 << 30, "message_max_bytes": 10**9}
        produce(scene.pair.source, scene.topic, batch, **at_once)
        scene.produce(1)
        scene.console.change({"mirror.first.start": "offset 1"})
        scene.console.leads_on("oversized-batch", "position set", "--topic", scene.topic, "--to", place)
        assert watermarks(scene.pair.target, scene.remote) == (0, count)
