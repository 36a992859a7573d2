"""Groups whose next records are not on the target: never in sync, counted, and told by every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import create_topic, delete_records, produce, records
from tests.support.mirrored_topic import MirroredTopic


class Scene:
    """A topic, and a group that has read some of it on the source."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path) -> None:
        self.pair, self.topic, self.folder, self.group = pair, topic, folder, f"{topic}-group"
        create_topic(pair.source, topic)

    def flow(self, **settings: str) -> Flow:
        own = {
            "A->B.groups": f"{self.topic}.*",
            "A->B.sync.group.offsets.enabled": "true",
            "A->B.mirror.group.translation": "exact",
            "checkpoints.topic.replication.factor": "1",
        }
        return pair_flow(self.folder, self.pair, topics=self.topic, settings={**own, **settings})

    def say(self, flow: Flow, *words: str) -> tuple[int, dict[str, Any]]:
        result = CliRunner().invoke(app, [*words, "--config", str(flow.path), "--flow", "A->B", "--json"])
        return result.exit_code, json.loads(result.stdout)

    def told(self, flow: Flow) -> tuple[int, str | None, int | None]:
        """Exit code of `groups status` after `groups apply`, and what it says of the group."""
        code, _ = self.say(flow, "groups", "apply")
        assert code == 0
        code, told = self.say(flow, "groups", "status")
        (row,) = (row for row in told["rows"] if row["group"] == self.group)
        return code, row["reason"], row["skipped"]


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder)


def test_a_copy_that_began_behind_the_group(scene: Scene) -> None:
    produce(scene.pair.source, scene.topic, records(100))
    commit_offset(scene.pair.source, scene.group, scene.topic, 40)
    flow = scene.flow(**{"A->B.mirror.first.start": "latest"})
    flow.run()
    produce(scene.pair.source, scene.topic, records(50, start=100))
    assert flow.run().records == 50

    assert scene.told(flow) == (1, "skips-records", 60)
    # The first record there is the best place that there is.
    assert committed_offsets(scene.pair.target, scene.group) == {(f"A.{scene.topic}", 0): 0}


@pytest.mark.parametrize("commits", ["true", "false"])
def test_a_hole_that_an_operator_left(scene: Scene, commits: str) -> None:
    """Also in front of it, and where no offsets are committed, a checkpoint is not in sync."""
    produce(scene.pair.source, scene.topic, records(50))
    commit_offset(scene.pair.source, scene.group, scene.topic, 20 if commits == "true" else 50)
    flow = scene.flow(**{"A->B.sync.group.offsets.enabled": commits})
    assert flow.run().records == 50
    produce(scene.pair.source, scene.topic, records(50, start=50))
    code, _ = scene.say(flow, "position", "set", "--topic", scene.topic, "--to", "80", "--yes")
    assert code == 0
    assert flow.run().records == 20

    assert scene.told(flow) == (1, "skips-records", 30)
    commit_offset(scene.pair.source, scene.group, scene.topic, 80)
    assert scene.told(flow) == (0, None, 0)


def test_retention_on_the_target_alone(scene: Scene) -> None:
    produce(scene.pair.source, scene.topic, records(100))
    commit_offset(scene.pair.source, scene.group, scene.topic, 20)
    flow = scene.flow()
    assert flow.run().records == 100
    delete_records(scene.pair.target, f"A.{scene.topic}", before=60)

    assert scene.told(flow) == (1, "skips-records", 40)
    delete_records(scene.pair.source, scene.topic, before=60)
    assert scene.told(flow)[1:] == (None, 0)
    # An offset out of range is reset by the consumer's policy: with `latest` it would skip what is there.
    assert committed_offsets(scene.pair.target, scene.group) == {(f"A.{scene.topic}", 0): 60}


def test_a_group_that_is_not_moved_is_not_called_in_sync(scene: Scene) -> None:
    produce(scene.pair.source, scene.topic, records(10))
    commit_offset(scene.pair.source, scene.group, scene.topic, 10)
    flow = scene.flow(**{"A->B.groups.exclude": f"{scene.topic}-excluded"})
    flow.run()
    assert scene.say(flow, "groups", "apply")[0] == 0

    for group, reason in (("typo", "group-not-found"), ("excluded", "group-not-replicated")):
        for verb in ("plan", "status"):
            code, told = scene.say(flow, "groups", verb, "--group", f"{scene.topic}-{group}")
            assert (code, told["reasons"]) == (1, {reason: 1}), (group, verb)
    code, told = scene.say(flow, "groups", "status", "--group", scene.group)
    assert (code, told["reasons"]) == (0, {"in-sync": 1})


def test_a_group_at_the_end_of_an_empty_partition_is_committed_at_the_end_of_its_copy(scene: Scene) -> None:
    """Without an offset, `auto.offset.reset=latest` would skip what is written before its members arrive."""
    commit_offset(scene.pair.source, scene.group, scene.topic, 0)
    flow = scene.flow()
    flow.run()

    assert scene.told(flow) == (0, None, 0)
    assert committed_offsets(scene.pair.target, scene.group) == {(f"A.{scene.topic}", 0): 0}
    # What comes next is copied behind that offset, so nothing changes.
    produce(scene.pair.source, scene.topic, records(5))
    flow.run()
    assert scene.told(flow) == (0, None, 0)
    assert committed_offsets(scene.pair.target, scene.group) == {(f"A.{scene.topic}", 0): 0}


def test_a_group_before_the_end_of_a_log_that_retention_has_emptied_is_at_its_end(scene: Scene) -> None:
    produce(scene.pair.source, scene.topic, records(10))
    commit_offset(scene.pair.source, scene.group, scene.topic, 4)
    delete_records(scene.pair.source, scene.topic, before=10)
    flow = scene.flow()
    flow.run()

    assert scene.told(flow) == (0, None, 0)
    assert committed_offsets(scene.pair.target, scene.group) == {(f"A.{scene.topic}", 0): 0}


def test_topics_limit_counts_and_exit_code(scene: Scene) -> None:
    other = f"{scene.topic}-other"
    create_topic(scene.pair.source, other)
    produce(scene.pair.source, scene.topic, records(10))
    produce(scene.pair.source, other, records(10))
    commit_offset(scene.pair.source, scene.group, scene.topic, 10)
    flow = scene.flow(**{"A->B.topics": f"{scene.topic}.*"})
    flow.run()
    assert scene.say(flow, "groups", "apply")[0] == 0
    # Behind the copy of the other topic alone.
    produce(scene.pair.source, other, records(1, start=10))
    commit_offset(scene.pair.source, scene.group, other, 11)

    code, told = scene.say(flow, "groups", "status", "--topics", scene.topic)
    assert (code, told["reasons"], [row["topic"] for row in told["rows"]]) == (0, {"in-sync": 1}, [scene.topic])
    code, told = scene.say(flow, "groups", "status", "--topics", other)
    assert code == 1
    assert [row["topic"] for row in told["rows"]] == [other]
    # A misspelt topic is no success.
    code, told = scene.say(flow, "groups", "status", "--topics", f"{scene.topic}-typo")
    assert (code, told["rows"]) == (1, [])
