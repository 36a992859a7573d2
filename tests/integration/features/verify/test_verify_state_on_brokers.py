"""Lost deletions of compacted topics, proven by state, with the brokers' own cleaner at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.features.verify.findings import DifferenceKind, Verdict
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.ledger.tables.segment_runs import columns_of, of_columns
from tests.support.brokers.compaction import create_compacted, forget, put, state
from tests.support.clusters import KafkaPair
from tests.support.console import Console
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, delete_topic, open_transaction, transaction
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import tamper, verify


def mirror(flow: Flow, *words: str, code: int = 0) -> Mapping[str, Any]:
    """What a command says as JSON."""
    said = Console(flow.path).say(*words)
    assert said.exit_code == code, said.document
    return said.document


def offset_of(pair: KafkaPair, topic: str, key: str) -> int:
    return max(record.offset for record in consume(pair.target, topic) if record.key == key.encode())


def test_a_deletion_that_was_cleaned_before_it_was_copied_is_found(mirrored: MirroredTopic) -> None:
    create_compacted(mirrored.source, mirrored.name)
    put(mirrored.source, mirrored.name, {"kept": "1", "lost": "1", "copied": "1", "again": "1"})
    flow = mirrored.flow()
    assert flow.run().exit_code == 0
    # One deletion is copied, the other is not: by then the source's cleaner has forgotten it.
    put(mirrored.source, mirrored.name, {"copied": None})
    assert flow.run().exit_code == 0
    put(mirrored.source, mirrored.name, {"lost": None, "again": None})
    forget(mirrored.source, mirrored.name, ["lost", "again"])
    put(mirrored.source, mirrored.name, {"again": "2"})
    assert flow.run().exit_code == 3
    mirrored.produce_remote([Record(key=b"stranger", value=b"1")])
    put(mirrored.source, mirrored.name, {"kept": "2", "pending": "1"})

    before = verify(flow)
    report = verify(flow, mode=VerifyMode.STATE)

    assert [each.kind for verdict in before.verdicts for each in verdict.differences] == [DifferenceKind.EXTRA]
    (verdict,) = report.verdicts
    assert report.exit_code == 3
    assert (verdict.verdict, verdict.deletions_lost, verdict.difference_count) == (Verdict.DIFFERENT, 1, 2)
    target = mirrored.remote
    assert {(each.kind, each.target_offset) for each in verdict.differences} == {
        (DifferenceKind.DELETION_LOST, offset_of(mirrored.pair, target, "lost")),
        (DifferenceKind.EXTRA, offset_of(mirrored.pair, target, "stranger")),
    }
    # `kept` and `pending` wait; `again` and what made the cleaner come are equal.
    assert (verdict.pending_keys, verdict.records) == (
        2,
        len({*state(mirrored.source, mirrored.name)} - {"kept", "pending"}),
    )
    told = mirror(flow, "verify", "--mode", "state", code=3)
    assert told["partitions"][0]["deletions_lost"] == 1
    # What was found by state says nothing about where to compare records again.
    assert [row.source_next for row in Verifications(flow.ledger).verified_up_to("A->B")] == []


def test_a_topic_that_is_written_to_and_cleaned_meanwhile_is_equal(mirrored: MirroredTopic) -> None:
    create_compacted(mirrored.source, mirrored.name, partitions=2, cleanup_policy="compact,delete")
    put(mirrored.source, mirrored.name, {"a": "1", "b": "1"})
    put(mirrored.source, mirrored.name, {"c": "1"}, partition=1)
    flow = mirrored.flow()
    flow.run()
    # The cleaner takes records that the target holds, and deletions that are copied.
    put(mirrored.source, mirrored.name, {"a": "2", "b": None})
    flow.run()
    forget(mirrored.source, mirrored.name, ["b"])

    report = verify(flow, mode=VerifyMode.STATE)

    assert report.exit_code == 0, report.to_dict()
    assert [verdict.difference_count for verdict in report.verdicts] == [0, 0]
    assert "keys" in report.sentence


def test_aborted_and_open_records_are_told_until_they_are_copied_again(mirrored: MirroredTopic) -> None:
    source, name = mirrored.source, mirrored.name
    mirrored.create(configs={"cleanup.policy": "compact"})
    put(source, name, {"alice": "1", "bob": "1", "carol": "1"})
    transaction(source, name, [b"2"], commit=True, name="good", key=b"carol")
    transaction(source, name, [b"998", b"999"], commit=False, key=b"bob")
    waiting = open_transaction(source, name, [b"5"], name="waiting", key=b"alice")
    flow = mirrored.flow()

    ended, undecided = flow.run().warnings
    full, stated = verify(flow), verify(flow, mode=VerifyMode.STATE)

    assert ended.startswith(f"2 records of aborted transactions are on the target as ordinary records ({name}: 2)")
    assert undecided.startswith("1 record of open transactions is on the target")
    (counts,) = mirror(flow, "plan")["copied_transactions"]
    assert (counts["topic"], counts["aborted"], counts["undecided"]) == (name, 2, 1)
    assert mirror(flow, "observe")["copied_transactions"] == [counts]
    assert full.sentence.startswith("EQUAL")
    assert "2 of them are records of aborted transactions" in full.sentence
    assert "1 of them is a record of open transactions" in full.sentence
    # A committed reader of the source sees neither; what an open transaction will do is not known yet.
    (verdict,) = stated.verdicts
    assert (verdict.verdict, verdict.pending_keys, verdict.records) == (Verdict.DIFFERENT, 1, 1)
    assert [each.kind for each in verdict.differences] == [DifferenceKind.ABORTED]

    waiting.abort_transaction(30)
    again = flow.run()

    assert again.warnings[0].startswith("1 record of aborted transactions")
    assert "The target has 3 in all" in again.warnings[0]
    assert "3 of them are records of aborted transactions" in verify(flow).sentence
    arguments = ["verify", "--mode", "state", "--config", str(flow.path), "--flow", "A->B"]
    assert "isolation.level = read_committed" in " ".join(CliRunner().invoke(app, arguments).output.split())

    # What the notes say to do ends with what a committed reader of the source sees.
    flow = mirrored.flow({"A.consumer.isolation.level": "read_committed"})
    delete_topic(mirrored.target, mirrored.remote)
    assert flow.run().exit_code == 3
    mirror(flow, "gaps", "recopy", "--all", "--yes")
    assert flow.run().exit_code == 0
    assert state(mirrored.target, mirrored.remote) == state(source, name)
    assert verify(flow, mode=VerifyMode.STATE).exit_code == verify(flow).exit_code == 0
    assert mirror(flow, "plan")["copied_transactions"] == []


def test_aborted_and_open_records_are_told_after_their_topic_was_deleted_at_the_source(mirrored: MirroredTopic) -> None:
    mirrored.create()
    transaction(mirrored.source, mirrored.name, [b"998", b"999"], commit=False)
    open_transaction(mirrored.source, mirrored.name, [b"5"], name="waiting")
    flow = mirrored.flow()
    flow.run()
    (before,) = mirror(flow, "plan")["copied_transactions"]

    delete_topic(mirrored.source, mirrored.name)
    flow.run()

    assert mirror(flow, "plan")["copied_transactions"] == [before]
    assert (before["aborted"], before["undecided"]) == (2, 1)


@pytest.mark.parametrize(
    "decision",
    [("gaps", "accept", "--all"), ("position", "set", "--to", "earliest")],
    ids=["accepted", "position set"],
)
def test_keys_of_a_former_source_topic_are_found_before_anything_of_the_new_one_is_copied(
    mirrored: MirroredTopic, decision: tuple[str, ...]
) -> None:
    create_compacted(mirrored.source, mirrored.name)
    put(mirrored.source, mirrored.name, {"kept": "1", "former": "1"})
    flow = mirrored.flow()
    assert flow.run().exit_code == 0
    delete_topic(mirrored.source, mirrored.name)
    create_compacted(mirrored.source, mirrored.name)
    assert [error.reason for error in flow.run().errors] == ["source-recreated"]
    topic = ("--topic", mirrored.name) if decision[0] == "position" else ()
    mirror(flow, *decision, *topic, "--yes")

    told = mirror(flow, "verify", "--mode", "state", code=3)

    (partition,) = told["partitions"]
    assert (partition["verdict"], partition["pending"], partition["difference_count"]) == ("different", 0, 2)


@pytest.mark.parametrize("known_from", [pytest.param(0, id="no map"), pytest.param(2, id="a map that begins later")])
def test_given_keys_from_before_the_map_that_the_target_lacks_then_they_are_not_called_equal(
    mirrored: MirroredTopic, known_from: int
) -> None:
    create_compacted(mirrored.source, mirrored.name)
    put(mirrored.source, mirrored.name, {"lost": "1", "kept": "1", "later": "1"})
    flow = mirrored.flow()
    assert flow.run().exit_code == 0
    # The target loses a key, and the ledger what it knows of it.
    tamper(mirrored.pair, mirrored.remote, lambda found: [each for each in found if each.key != b"lost"])
    (segment,) = flow.ledger.segments("A->B", mirrored.name, 0)
    kept = columns_of(segment).behind(source=known_from, target=0)
    rows = [of_columns(kept, like=segment)] if known_from else []
    flow.ledger.replace_segments("A->B", mirrored.name, 0, rows)

    (verdict,) = verify(flow, mode=VerifyMode.STATE).verdicts

    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "before-map")
    assert "1 key of the source from before the offset map is not on the target" in (verdict.detail or "")
