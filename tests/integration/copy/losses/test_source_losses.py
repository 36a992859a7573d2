"""What a source loses stops its partition and no other, is noted once, and goes on as a person decides."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchRequestPartition, open_clients
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.config.model import ClientSettings
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.errors import (
    DirtyStartError,
    MirrorError,
    RetentionGapError,
    SourceRecreatedError,
    SourceTruncatedError,
)
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger.rows import GapRow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import start_together
from tests.support.console import Console
from tests.support.flows import Flow
from tests.support.kafka import (
    Record,
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


class Scene:
    """A flow of one topic with two partitions, of which the first is going to lose something."""

    def __init__(self, mirrored: MirroredTopic) -> None:
        self.mirrored, self.pair, self.topic = mirrored, mirrored.pair, mirrored.name
        mirrored.create(partitions=2)
        self.flow = mirrored.flow({"A->B.tasks.max": "2"})
        self.console = Console(self.flow.path)

    def produce(self, count: int, *, start: int = 0, partition: int = 0) -> list[Record]:
        return self.mirrored.produce(records(count, start=start, partition=partition))

    def copied(self, count: int = 10) -> list[Record]:
        """Records in both partitions that are on the target by the end of this."""
        written = self.produce(count)
        self.produce(count, partition=1)
        assert self.flow.run().errors == ()
        return written

    def run(self, **options: Any) -> RunReport:
        return self.flow.run(sync=False, **options)

    def on_target(self) -> list[bytes | None]:
        """The values in the target's first partition."""
        return values(self.mirrored.copied(partitions=[0]))

    def gaps(self) -> list[GapRow]:
        return list(self.flow.ledger.gaps("A->B"))

    def decide(self, *words: str) -> list[Any]:
        """The decisions of `mirror gaps ...`, which must succeed."""
        said = self.console.say("gaps", *words)
        assert said.exit_code == 0, said.document
        return list(said.document["decisions"])

    def forget(self, **changes: Any) -> Position:
        """Store a changed position of the first partition, as if it had been written so; returns the former."""
        with FlowClusters.connect(self.flow.config) as clusters:
            former = clusters.positions.read_all().positions[TopicPartition(self.topic, 0)].position
            changed = replace(former, claim=(former.claim or 0) + 1, **changes)
            clusters.positions.write([changed])
        self.flow.ledger.save_positions([position_row(self.flow.config, changed)])
        return former

    def refused(self, kind: type[MirrorError], **options: Any) -> MirrorError:
        """A run that stops the first partition only; the second has something new and gets it."""
        end = watermarks(self.pair.source, self.topic, 1)[1]
        self.produce(3, start=end, partition=1)

        report = self.run(**options)

        (error,) = report.errors
        assert isinstance(error, kind), error
        assert (error.where.flow, error.where.topic, error.where.partition) == ("A->B", self.topic, 0)
        assert report.exit_code == 3
        assert report.records == 3
        return error


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored)


class TestRetentionThatPassedThePosition:
    @pytest.fixture
    def first(self, scene: Scene) -> list[Record]:
        """Ten records that were copied; ten more were written, of which retention took five."""
        first = scene.copied()
        scene.produce(10, start=10)
        delete_records(scene.pair.source, scene.topic, before=15)
        return first

    def test_it_is_noted_once_with_its_range_and_time(self, scene: Scene, first: list[Record]) -> None:
        scene.refused(RetentionGapError)
        before_second = datetime.now(UTC)
        scene.refused(RetentionGapError)

        (gap,) = scene.gaps()
        assert (gap.cause, gap.first_offset, gap.next_offset, gap.state) == ("retention-gap", 10, 15, "open")
        assert (gap.topic, gap.partition) == (scene.topic, 0)
        assert gap.first_time is not None
        # The builder's records are of the year 2024: what is lost was written after the last of those copied.
        assert gap.first_time.timestamp() * 1000 == first[-1].timestamp_ms
        assert gap.last_time is not None
        assert gap.last_time < before_second
        assert scene.on_target() == values(first)
        # Without consent nothing is changed.
        said = scene.console.say("gaps", "accept", "--all")
        assert (said.exit_code, said.document["done"]) == (1, 0)
        assert said.document["decisions"][0]["new_position"] == 15
        scene.refused(RetentionGapError)

    def test_accepted_it_is_left_out_and_what_follows_is_copied(self, scene: Scene, first: list[Record]) -> None:
        scene.refused(RetentionGapError)

        told = scene.decide("accept", "--topic", scene.topic, "--partition", "0", "--note", "only a test", "--yes")

        assert [(each["position"], each["new_position"]) for each in told] == [(10, 15)]
        report = scene.run()
        assert (report.errors, report.records) == ((), 5)
        assert scene.on_target() == values([*first, *records(5, start=15)])
        (gap,) = scene.gaps()
        assert (gap.state, gap.note) == ("accepted", "only a test")
        assert gap.decided_by is not None
        assert "@" in gap.decided_by

    def test_a_stopped_partition_is_neither_copied_nor_an_error_until_it_is_resumed(
        self, scene: Scene, first: list[Record]
    ) -> None:
        scene.refused(RetentionGapError)

        scene.decide("stop", "--all", "--yes")

        report = scene.run()
        assert (report.errors, report.records, report.exit_code) == ((), 0, 0)
        planned = plan_flow(scene.flow.config, RunOptions(), scene.flow.ledger)
        assert (planned.stopped, planned.problems) == (1, ())
        scene.decide("resume", "--topic", scene.topic, "--yes")
        scene.refused(RetentionGapError)
        (gap,) = scene.gaps()
        assert gap.state == "open"
        assert "stopped by" in (gap.note or "")

    def test_a_run_may_be_told_to_accept_whatever_it_finds(self, scene: Scene, first: list[Record]) -> None:
        report = scene.run(losses=Decision.ACCEPT, trigger="airflow mirror__A__B manual")

        assert (report.errors, report.records, report.lost) == ((), 5, 5)
        assert any("5 offsets in 1 partition" in each for each in report.warnings)
        (gap,) = scene.gaps()
        assert (gap.state, gap.decided_by) == ("accepted", "airflow mirror__A__B manual")
        assert scene.on_target() == values([*first, *records(5, start=15)])


class TestATopicThatWasCreatedAgain:
    @pytest.mark.parametrize("count", [10, 4], ids=["same size", "smaller"])
    def test_its_records_are_copied_only_when_somebody_says_so(self, scene: Scene, count: int) -> None:
        first = scene.copied()
        delete_topic(scene.pair.source, scene.topic)
        create_topic(scene.pair.source, scene.topic, partitions=2)
        again = scene.produce(count, start=100)

        errors = scene.run().errors

        # The whole topic is another one.
        assert [type(error) for error in errors] == [SourceRecreatedError, SourceRecreatedError]
        assert [gap.cause for gap in scene.gaps()] == ["source-recreated"] * 2
        assert scene.on_target() == values(first)
        scene.decide("accept", "--all", "--yes")
        report = scene.run()
        assert (report.errors, report.records) == ((), count)
        assert scene.on_target() == values([*first, *again])
        assert scene.run().records == 0


class TestASourceThatEndsBeforeThePosition:
    """The position says that nine records more were copied than the source has."""

    @pytest.fixture
    def first(self, scene: Scene) -> list[Record]:
        first = scene.copied()
        scene.forget(offset=18)
        return first

    def test_growing_again_does_not_hide_it(self, scene: Scene, first: list[Record]) -> None:
        scene.refused(SourceTruncatedError)
        scene.produce(30, start=10)

        scene.refused(SourceTruncatedError)

        (gap,) = scene.gaps()
        assert (gap.cause, gap.first_offset, gap.next_offset) == ("source-truncated", 10, 19)
        assert scene.on_target() == values(first)

    def test_accepted_the_new_history_is_copied_from_where_the_old_one_was_cut(
        self, scene: Scene, first: list[Record]
    ) -> None:
        scene.refused(SourceTruncatedError)
        new = scene.produce(30, start=10)

        scene.decide("accept", "--id", scene.gaps()[0].id[:8], "--yes")

        assert scene.run().records == 30
        assert scene.on_target() == values([*first, *new])

    @pytest.mark.parametrize("words", [("gaps", "accept", "--all"), ("position", "set", "--to", "latest")])
    def test_the_offset_map_ends_where_the_old_history_was_cut(
        self, scene: Scene, first: list[Record], words: tuple[str, ...]
    ) -> None:
        """Otherwise a group of the new history is translated to records of the old one, until new ones are copied."""
        ledger = scene.flow.ledger
        (row,) = ledger.segments("A->B", scene.topic, 0)
        lost = replace(row, source_first=10, source_next=19, target_first=10, target_next=19, records=9)
        ledger.append_segments([lost])
        scene.refused(SourceTruncatedError)
        where = ("--topic", scene.topic, "--partition", "0") if words[0] == "position" else ()

        said = scene.console.say(*words, *where, "--yes")

        assert said.exit_code == 0, said.document
        assert [(each.source_first, each.source_next) for each in ledger.segments("A->B", scene.topic, 0)] == [(0, 10)]

    def test_recopied_the_source_is_copied_from_its_start_behind_what_is_there(
        self, scene: Scene, first: list[Record]
    ) -> None:
        scene.refused(SourceTruncatedError)

        told = scene.decide("recopy", "--topic", scene.topic, "--yes")

        assert [(each["new_position"], each["target_offset"]) for each in told] == [(0, 10)]
        assert scene.run().records == 10
        assert scene.on_target() == values([*first, *first])
        assert scene.gaps()[0].state == "recopied"

    def test_what_an_interrupted_run_may_have_left_is_not_accepted_away(
        self, scene: Scene, first: list[Record]
    ) -> None:
        scene.refused(SourceTruncatedError)
        scene.forget(target_offset=5)

        said = scene.console.say("gaps", "accept", "--all", "--yes")

        assert (said.exit_code, said.document["done"]) == (3, 0)
        assert said.reasons == {DirtyStartError.reason}
        assert scene.gaps()[0].state == "open"


def test_a_source_that_was_cut_and_grew_beyond_the_position_is_told_by_its_leader_epochs(
    mirrored: MirroredTopic, kafka_jars: Path, cluster_folder: Path
) -> None:
    source = KafkaCluster("cut", directory=cluster_folder / "cut", jars=kafka_jars)
    with start_together(source):
        create_topic(source, mirrored.name)
        first = produce(source, mirrored.name, records(10))
        # Each election begins a new leader epoch.
        source.restart(source.node_ids[0])
        source.wait_ready()
        new = produce(source, mirrored.name, records(20, start=50))
        # Thirteen records of the first epoch were read: the leader tells with every fetch that it has only ten.
        assert diverging_end(source, mirrored.name, offset=13, last_epoch=0) == 10
        assert diverging_end(source, mirrored.name, offset=10, last_epoch=0) is None
        flow = mirrored.between(source=source).flow()
        pretend_copied(flow, mirrored.name, first)

        (error,) = flow.run(sync=False).errors

        assert isinstance(error, SourceTruncatedError)
        assert "records 10 to 12" in error.what
        # No copy shows that the records before are those that were copied.
        assert "Only the records before offset 0 are known" in error.what
        (gap,) = flow.ledger.gaps("A->B")
        assert (gap.first_offset, gap.next_offset) == (0, 13)
        report = flow.run(losses=Decision.ACCEPT)
        assert (report.errors, report.records) == ((), 30)
        assert values(mirrored.copied()) == values([*first, *new])


def diverging_end(source: KafkaCluster, topic: str, *, offset: int, last_epoch: int) -> int | None:
    settings = ClientSettings(cluster="A", role="test", properties={"bootstrap.servers": source.bootstrap_servers})

    async def ask() -> int | None:
        async with open_clients(Connection.from_settings(settings)) as (client,):
            await client.refresh_leaders([topic])
            leader = client.leader(TopicPartition(topic, 0))
            assert leader is not None
            wanted = FetchRequestPartition(topic, 0, offset, 10_000, last_epoch)
            (found,) = await client.fetch(leader, [wanted], max_bytes=10_000, max_wait_ms=100, read_committed=False)
            assert found.error_code == 0
            assert bool(len(found.records)) == (found.diverging_end is None)
            return found.diverging_end

    return asyncio.run(ask())


def pretend_copied(flow: Flow, topic: str, first: list[Record]) -> None:
    """Thirteen records of the source's first epoch were copied, of which it has only ten any more."""
    assert len(first) == 10
    flow.sync_topics()
    copied = {"offset": 12, "target_offset": 0, "leader_epoch": 0}
    with FlowClusters.connect(flow.config) as clusters:
        topic_id = clusters.source_admin.describe_topics([topic])[topic].topic_id
        closed = Position(topic, 0, state=PositionState.CLOSED, run_id="before", topic_id=topic_id, **copied)
        clusters.positions.write([closed])


#: Where a topic of twenty records begins by its rule.
FIRST_STARTS = {
    "earliest": 0,
    "latest": 20,
    "offset 7": 7,
    "offset 700": 20,
    # The timestamp of record 12.
    "2024-01-01T00:00:12Z": 12,
    "2030-01-01T00:00:00Z": 20,
}


def test_a_topic_begins_where_its_rule_says_and_goes_on_from_there(mirrored: MirroredTopic) -> None:
    topics = {f"{mirrored.name}-{number}": rule for number, rule in enumerate(FIRST_STARTS)}
    for topic in topics:
        create_topic(mirrored.source, topic)
        produce(mirrored.source, topic, records(20))
    rules = ", ".join(f"{topic}={rule}" for topic, rule in topics.items())
    settings = {"mirror.first.start": "latest", "mirror.first.start.topics": rules}
    flow = mirrored.flow(settings, topics=f"{mirrored.name}-.*")
    assert flow.run().errors == ()
    for topic in topics:
        produce(mirrored.source, topic, records(5, start=20))

    report = flow.run()

    assert report.errors == ()
    for topic, rule in topics.items():
        copied = values(consume(mirrored.target, f"A.{topic}"))
        assert copied == values(records(25)[FIRST_STARTS[rule] :]), rule
