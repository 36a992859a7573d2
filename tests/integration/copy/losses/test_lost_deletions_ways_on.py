"""The ways on that `deletions-possibly-lost` names, each taken from the command line until the flow runs again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.errors import DeletionsPossiblyLostError
from mirror_lib.features.repair.key_deletions import delete_keys, plan_key_deletion
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.verify.state.lost import find_lost_deletions
from mirror_lib.offsets.offset_map import Landing, OffsetMap
from mirror_lib.planning.flow_clusters import FlowClusters
from tests.support.brokers.compaction import create_compacted, forget, put, state
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.interruptions import interrupted, killed_after
from tests.support.kafka import consume, delete_topic, set_config
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify

REASON = DeletionsPossiblyLostError.reason


class Scene:
    """A key that was deleted and cleaned at the source between two runs, which the second run has noticed."""

    def __init__(self, mirrored: MirroredTopic) -> None:
        pair, topic = mirrored.pair, mirrored.name
        self.pair, self.topic, self.target = pair, topic, mirrored.remote
        create_compacted(pair.source, topic)
        put(pair.source, topic, {"kept": "1", "lost": "1"})
        settings = {
            "A->B.groups": f"{topic}.*",
            "A->B.sync.group.offsets.enabled": "true",
            "checkpoints.topic.replication.factor": "1",
        }
        self.flow = mirrored.flow(settings)
        assert self.flow.run().exit_code == 0
        put(pair.source, topic, {"lost": None})
        forget(pair.source, topic, ["lost"])
        assert self.flow.run().exit_code == 3
        assert self.waiting() == [REASON]
        # As the message advises. A run may take longer than these 200 ms.
        set_config(pair.source, topic, "delete.retention.ms", "86400000")

    def waiting(self) -> list[str]:
        return [gap.cause for gap in self.flow.ledger.open_gaps("A->B")]

    def decide(self, *words: str, code: int = 0) -> dict[str, Any]:
        """As the message says: with topic and partition."""
        return self.mirror("gaps", *words, "--topic", self.topic, "--partition", "0", "--yes", code=code)

    def mirror(self, *words: str, code: int = 0) -> dict[str, Any]:
        given = [*words, "--config", str(self.flow.path), "--flow", "A->B", "--json"]
        result = CliRunner().invoke(app, given, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout or "{}")

    def runs_again(self) -> None:
        """The flow copies what comes, nobody is asked any more, and records are equal."""
        put(self.pair.source, self.topic, {"later": "1"})
        report = self.flow.run()
        assert (report.exit_code, report.errors) == (0, ())
        assert state(self.pair.target, self.target)["later"] == "1"
        assert self.waiting() == []
        compared = verify(self.flow)
        assert compared.exit_code == 0, compared.to_dict()


@pytest.fixture
def scene(mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored)


def test_a_fresh_copy_has_no_such_keys(scene: Scene) -> None:
    refused = scene.decide("recopy", code=3)
    assert "does not delete" in refused["decisions"][0]["error"]["what"]

    delete_topic(scene.pair.target, scene.target)
    assert scene.flow.run().exit_code == 3
    assert sorted(scene.waiting()) == sorted([REASON, "target-deleted"])
    scene.decide("recopy")

    scene.runs_again()
    assert state(scene.pair.target, scene.target) == state(scene.pair.source, scene.topic)
    assert verify(scene.flow, mode=VerifyMode.STATE).exit_code == 0


def test_a_loss_behind_an_interrupted_run_is_copied_again_and_the_keys_stay_to_be_decided(scene: Scene) -> None:
    """Neither could be decided: accepting needs a known end of the target, and copying again deletes no keys."""
    put(scene.pair.source, scene.topic, {"more": "1"})
    interrupted(scene.flow, killed_after())
    delete_topic(scene.pair.source, scene.topic)
    create_compacted(scene.pair.source, scene.topic)
    put(scene.pair.source, scene.topic, {"new": "1"})
    assert scene.flow.run().exit_code == 3
    assert sorted(scene.waiting()) == sorted([REASON, "source-recreated"])
    refused = scene.decide("accept", code=3)
    assert refused["decisions"][0]["error"]["reason"] == "unclean-start"

    scene.decide("recopy")

    assert scene.waiting() == [REASON]
    scene.decide("accept")
    assert scene.flow.run().exit_code == 0
    assert {"lost", "more", "new"} <= {*state(scene.pair.target, scene.target)}


def test_a_stop_is_kept_until_it_is_taken_back_and_accepting_leaves_the_key(scene: Scene) -> None:
    scene.decide("stop")
    put(scene.pair.source, scene.topic, {"meanwhile": "1"})
    assert scene.flow.run().records == 0
    scene.decide("resume")
    scene.decide("accept")

    scene.runs_again()
    assert {"meanwhile", "lost"} <= {*state(scene.pair.target, scene.target)}


def test_written_deletions_make_both_sides_equal_and_the_flow_goes_on(scene: Scene) -> None:
    assert verify(scene.flow).exit_code == 0
    end = max(record.offset or 0 for record in consume(scene.pair.source, scene.topic)) + 1
    copied_to = max(record.offset or 0 for record in consume(scene.pair.target, scene.target)) + 1
    commit_offset(scene.pair.source, f"{scene.topic}-group", scene.topic, end)
    shown = scene.decide("delete-keys", "--note", "gone at the source")
    assert shown["deletions"][0]["keys"] == 1
    assert shown["deleted"] == 1
    assert "lost" not in state(scene.pair.target, scene.target)
    assert scene.waiting() == []

    # Both kinds of verification know the tombstone, before and after more was copied, also when the ledger is lost.
    for mode in (VerifyMode.FULL, VerifyMode.RECENT):
        compared = verify(scene.flow, mode=mode)
        assert (compared.exit_code, compared.difference_count) == (0, 0)
        # A group goes on at the deletions, or at the record that is next for it where there is one.
        scene.mirror("groups", "apply")
        later = [record.offset or 0 for record in consume(scene.pair.target, scene.target) if record.key == b"later"]
        target_offset = {(scene.target, 0): min(later, default=copied_to)}
        assert committed_offsets(scene.pair.target, f"{scene.topic}-group") == target_offset
        by_state = verify(scene.flow, mode=VerifyMode.STATE)
        assert (by_state.exit_code, by_state.difference_count) == (0, 0)
        scene.runs_again()
    assert scene.decide("delete-keys")["deletions"] == []
    scene.flow.ledger.replace_segments("A->B", scene.topic, 0, [])
    scene.mirror("map", "rebuild", "--apply")
    assert verify(scene.flow).exit_code == 0
    # Each record stands where the map says.
    here = {record.offset or 0: record.value for record in consume(scene.pair.source, scene.topic)}
    there = {record.offset: record.value for record in consume(scene.pair.target, scene.target)}
    maps = OffsetMap.of_segments(scene.flow.ledger.segments("A->B", scene.topic, 0))
    copied = {offset: value for offset, value in here.items() if maps.to_target(offset).landing is Landing.EXACT}
    assert copied == here
    assert {offset: there[maps.to_target(offset).offset] for offset in copied} == here


def test_a_topic_that_is_not_compacted_has_no_keys_to_delete(mirrored: MirroredTopic) -> None:
    mirrored.create()
    flow = mirrored.flow()
    flow.run()
    given = ["gaps", "delete-keys", "--topic", mirrored.name, "--config", str(flow.path), "--flow", "A->B", "--yes"]

    result = CliRunner().invoke(app, given)

    assert result.exit_code == 2
    assert "not compacted" in result.stderr


def test_a_key_that_the_source_has_again_is_not_deleted(scene: Scene) -> None:
    with FlowClusters.connect(scene.flow.config) as clusters:
        ledger = scene.flow.ledger
        ((found,), _) = find_lost_deletions(scene.flow.config, ledger, (scene.topic,), (), lambda _: None)
        offsets = set(found.offsets.tolist())
        planned = plan_key_deletion(
            scene.flow.config, clusters, found.source, found.target, offsets, source_read_to=found.source_read_to
        )
        assert planned.keys == (b"lost",)
        put(scene.pair.source, scene.topic, {"lost": "2"})

        with hold_lock(ledger, flow="A->B", run_id="r", lease_seconds=60) as lease:
            written = delete_keys(scene.flow.config, clusters, ledger, lease, planned, run_id="r", by="somebody")

    assert written == 0
    scene.runs_again()
    assert state(scene.pair.target, scene.target)["lost"] == "2"


def test_a_transaction_of_deletions_that_was_left_open_counts_for_nothing(scene: Scene, monkeypatch: Any) -> None:
    async def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Transaction, "commit", die)
    scene.decide("delete-keys", code=130)
    monkeypatch.undo()

    assert scene.flow.run().exit_code == 0
    assert "lost" in state(scene.pair.target, scene.target)
    assert scene.decide("delete-keys")["deleted"] == 1
    scene.runs_again()
    assert "lost" not in state(scene.pair.target, scene.target)
