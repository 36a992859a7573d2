"""`mirror translate` and `mirror map rebuild` between real brokers: each record is known by its value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mirror_lib.offsets.offset_map import OffsetMap
from tests.support.clusters import KafkaPair
from tests.support.console import Console
from tests.support.cutovers import commit
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import consume, create_topic, produce, records, transaction, watermarks
from tests.support.mirrored_topic import MirroredTopic


class Scene:
    """A flow of one topic with one partition."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path, **configs: str) -> None:
        self.pair, self.topic, self.folder = pair, topic, folder
        create_topic(pair.source, topic, configs={name.replace("_", "."): value for name, value in configs.items()})
        self.flow: Flow = pair_flow(
            folder,
            pair,
            topics=topic,
            # Compaction is to happen when a test wants it, on the side that it wants.
            settings={"A->B.sync.topic.configs.enabled": "false", "A->B.consumer.isolation.level": "read_committed"},
        )

    def copy(self) -> None:
        assert self.flow.run().errors == ()

    def say(self, *words: str) -> tuple[int, dict[str, Any]]:
        """A command, with its exit code and document."""
        said = Console(self.flow.path).say(*words)
        return said.exit_code, dict(said.document)

    def translated(self, *words: str) -> list[dict[str, Any]]:
        code, found = self.say("translate", *words)
        assert code == 0, found
        return found["translations"]

    def truth(self) -> dict[int, int]:
        """Source offset to target offset, by what consumers see on both sides; every value is written once."""
        there = {record.value: record.offset for record in consume(self.pair.target, f"A.{self.topic}")}
        return {
            record.offset: there[record.value]
            for record in consume(self.pair.source, self.topic)
            if record.offset is not None and record.value in there
        }

    def map(self) -> OffsetMap:
        """As the ledger has it."""
        return OffsetMap.of_segments(self.flow.ledger.segments("A->B", self.topic, 0))

    def lose_ledger(self) -> OffsetMap:
        """Forget the map; returns it."""
        known = self.map()
        self.flow.ledger.replace_segments("A->B", self.topic, 0, [])
        return known

    def rebuilt(self, *words: str) -> dict[str, Any]:
        code, found = self.say("map", "rebuild", *words)
        assert code == 0, found
        (partition,) = found["partitions"]
        return {**partition, "written": found["written"]}


def offsets(numbers: list[int]) -> list[str]:
    return [word for number in numbers for word in ("--offset", str(number))]


@pytest.fixture
def transactional(mirrored: MirroredTopic) -> Scene:
    """Committed and aborted transactions, copied in three runs."""
    scene = Scene(mirrored.pair, mirrored.name, mirrored.folder)
    for run in range(3):
        for number in range(4):
            values = [b"%d-%d-%d" % (run, number, each) for each in range(5)]
            transaction(mirrored.source, mirrored.name, values, commit=number != 2)
        scene.copy()
    return scene


class TestTranslate:
    def test_every_record_and_hole_of_a_transactional_topic(self, transactional: Scene) -> None:
        truth, end = transactional.truth(), watermarks(transactional.pair.source, transactional.topic)[1]
        assert len(truth) == 3 * 3 * 5

        rows = transactional.translated("--topic", transactional.topic, "--partition", "0", *offsets(list(range(end))))

        following = max(truth.values()) + 1
        for row in rows:
            offset = row["source_offset"]
            later = [there for here, there in truth.items() if here >= offset]
            assert row["target_offset"] == min(later, default=following)
            assert (row["landing"] == "exact") == (offset in truth)
        places = sorted(truth.values())
        back = transactional.translated(
            "--topic", transactional.topic, "--partition", "0", "--to-source", *offsets(places)
        )
        assert {row["source_offset"]: row["target_offset"] for row in back} == truth

    def test_a_group_goes_on_at_the_record_it_has_not_read(self, transactional: Scene) -> None:
        truth = transactional.truth()
        group = f"{transactional.topic}-group"
        behind, ahead = sorted(truth)[7], watermarks(transactional.pair.source, transactional.topic)[1]
        commit(transactional.pair.source, group, transactional.topic, {0: behind})

        (row,) = transactional.translated("--group", group)

        assert (row["target_topic"], row["target_offset"]) == (f"A.{transactional.topic}", truth[behind])
        assert (row["landing"], row["duplicates"]) == ("exact", 0)
        commit(transactional.pair.source, group, transactional.topic, {0: ahead})
        (row,) = transactional.translated("--group", group)
        assert (row["target_offset"], row["landing"]) == (max(truth.values()) + 1, "beyond")

    def test_an_idle_partition_begins_at_the_start_and_a_lost_ledger_is_told(self, mirrored: MirroredTopic) -> None:
        scene = Scene(mirrored.pair, mirrored.name, mirrored.folder)
        scene.copy()
        (idle,) = scene.translated("--topic", mirrored.name, "--partition", "0", "--offset", "0")
        mirrored.produce(records(3))
        scene.copy()
        scene.lose_ledger()

        code, found = scene.say("translate", "--topic", mirrored.name, "--partition", "0", "--offset", "0")

        assert (idle["target_offset"], idle["landing"]) == (0, "beyond")
        assert (code, found["error"]["reason"]) == (3, "offset-map")
        assert "map rebuild" in found["error"]["action"]


class TestRebuild:
    def test_a_transactional_topic(self, transactional: Scene) -> None:
        truth, known = transactional.truth(), transactional.lose_ledger()

        shown = transactional.rebuilt()
        assert transactional.map().empty
        applied = transactional.rebuilt("--apply")
        again = transactional.rebuilt("--apply")

        assert (shown["only_in_logs"], shown["written"]) == (len(truth), 0)
        assert applied["written"] == 1
        assert transactional.map().columns.runs() == known.columns.runs()
        assert (again["same"], again["to_be_written"], again["written"]) == (len(truth), False, 0)

    def test_logs_that_do_not_match_leave_the_ledger_alone(self, mirrored: MirroredTopic) -> None:
        scene = Scene(mirrored.pair, mirrored.name, mirrored.folder)
        mirrored.produce(records(20))
        mirrored.produce(records(1))
        scene.copy()
        known = scene.lose_ledger()
        other = f"{mirrored.name}-other"
        create_topic(mirrored.target, f"A.{other}")
        produce(mirrored.target, f"A.{other}", records(21, start=100))
        create_topic(mirrored.source, other)
        produce(mirrored.source, other, records(21))
        settings = {"mirror.topics.rename": f"{mirrored.name}:A.{other}"}
        folder = mirrored.folder / "other"
        folder.mkdir()
        wrong = pair_flow(folder, mirrored.pair, topics=mirrored.name, settings=settings)

        said = Console(wrong.path).say("map", "rebuild", "--apply")

        assert said.exit_code == 3
        (error,) = said.document["errors"]
        assert (error["reason"], error["topic"]) == ("target-diverged", mirrored.name)
        assert (said.document["written"], wrong.ledger.segments("A->B", mirrored.name, 0)) == (0, ())
        assert known.records == 21
