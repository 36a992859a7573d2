"""Records of aborted transactions, which MirrorMaker 2's default isolation level makes ordinary records."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.verify.findings import DifferenceKind, Verdict
from mirror_lib.verify.model import VerifyMode
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, delete_topic, open_transaction, transaction
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify


def mirror(flow: Flow, *words: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """What a command says as JSON, and as text."""
    arguments = [*words, "--config", str(flow.path), "--flow", "A->B"]
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document, " ".join(CliRunner().invoke(app, arguments).output.split())


def state(records: list[Record]) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records if record.value is not None}


def test_what_read_uncommitted_copies_of_aborted_and_open_transactions_is_told_until_it_is_copied_again(
    mirrored: MirroredTopic,
) -> None:
    source, name = mirrored.source, mirrored.name
    mirrored.create(
        [Record(key=key, value=b"1") for key in (b"alice", b"bob", b"carol")], configs={"cleanup.policy": "compact"}
    )
    transaction(source, name, [b"2"], commit=True, name="good", key=b"carol")
    transaction(source, name, [b"998", b"999"], commit=False, key=b"bob")
    waiting = open_transaction(source, name, [b"5"], name="waiting", key=b"alice")
    flow = mirrored.flow()

    report = flow.run()
    planned, text = mirror(flow, "plan")
    full, stated = verify(flow), verify(flow, mode=VerifyMode.STATE)

    (copied,) = report.results
    assert (copied.records, copied.aborted, copied.transactions and copied.transactions.undecided) == (7, 2, 1)
    ended, undecided = report.warnings
    assert ended.startswith(f"2 records of aborted transactions are on the target as ordinary records ({name}: 2)")
    assert undecided.startswith("1 record of open transactions is on the target")
    (counts,) = planned["copied_transactions"]
    assert (counts["topic"], counts["aborted"], counts["undecided"]) == (name, 2, 1)
    assert "2 records of aborted transactions are on the target" in text
    assert full.exit_code == 0
    assert "2 of them are records of aborted transactions" in full.sentence
    assert "1 of them is a record of open transactions" in full.sentence
    # A committed reader of the source sees neither; what an open transaction will do is not known yet.
    (verdict,) = stated.verdicts
    assert (verdict.verdict, verdict.pending_keys, verdict.records) == (Verdict.DIFFERENT, 1, 1)
    assert [each.kind for each in verdict.differences] == [DifferenceKind.ABORTED]

    waiting.abort_transaction(30)
    again = flow.run()

    (settled,) = again.results
    assert (settled.records, settled.aborted) == (0, 1)
    assert "The target has 3 in all" in again.warnings[0]
    assert "3 of them are records of aborted transactions" in verify(flow).sentence
    _, text = mirror(flow, "verify", "--mode", "state", code=3)
    assert "aborted" in text
    assert "isolation.level = read_committed" in text

    # What the notes say to do ends with what a committed reader of the source sees.
    flow = mirrored.flow({"A.consumer.isolation.level": "read_committed"})
    delete_topic(mirrored.target, mirrored.remote)
    assert flow.run().exit_code == 3
    mirror(flow, "gaps", "recopy", "--all", "--yes")
    assert flow.run().exit_code == 0
    assert state(mirrored.copied()) == state(consume(source, name, isolation="read_committed"))
    assert verify(flow, mode=VerifyMode.STATE).exit_code == 0
    assert mirror(flow, "plan")[0]["copied_transactions"] == []
