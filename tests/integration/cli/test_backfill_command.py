"""`mirror backfill` on brokers: the estimate, and the job that the command starts."""

from __future__ import annotations

from mirror_lib.features.backfill.tables import Backfills
from tests.support.console import Console
from tests.support.kafka import records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.terminal import invoke


def test_a_plan_tells_what_is_left_and_changes_nothing(mirrored: MirroredTopic) -> None:
    mirrored.create(records(30), partitions=2)
    flow = mirrored.flow()
    words = ["--topics", mirrored.name, "--from", "offset 10", "--into-suffix", ".old", "--bytes-per-second", "100"]

    said = Console(flow.path).say("backfill", "plan", *words)

    told = said.document
    assert said.exit_code == 0
    assert told["backfill"]["offsets"] == 20
    assert told["backfill"]["defined"] is False
    # The other partition is empty.
    assert [(each["partition"], each["from"], each["to"]) for each in told["backfill"]["partitions"]] == [(0, 10, 30)]
    assert told["backfill"]["minutes"] is not None
    # The table has the numbers of the document and of the options: the end is exclusive.
    _, shown, _ = invoke("backfill", "plan", *words, "--config", flow.path, "--flow", "A->B")
    (row,) = [line.split() for line in shown.splitlines() if line.startswith(f"{mirrored.name} ")]
    assert row[1:6] == ["0", f"A.{mirrored.name}.old", "10", "30", "10"]
    assert Backfills(flow.ledger).of_flow("A->B") == ()


def test_what_cannot_be_meant_is_wrong_usage(mirrored: MirroredTopic) -> None:
    mirrored.create()
    console = Console(mirrored.flow().path)

    for words in (
        [],
        ["--name", "unknown"],
        ["--topics", mirrored.name],
        ["--topics", mirrored.name, "--into", "x", "--into-same"],
        ["--topics", mirrored.name, "--into", "x", "--from", "yesterday"],
        ["--topics", mirrored.name, "--into", "x", "--from", "latest"],
        ["--topics", mirrored.name, "--into", "x", "--to", "earliest"],
        ["--topics", mirrored.name, "--into", "x", "--from", "offset 9", "--to", "offset 3"],
        ["--topics", mirrored.name, "--into", "x", "--from", "2026-02-01", "--to", "2026-01-31"],
        ["--topics", "no-such-topic", "--into", "x"],
        ["--topics", mirrored.name, "--into", "x", "--name", "a b"],
    ):
        said = console.say("backfill", "plan", *words)

        assert (said.exit_code, said.reasons) == (2, {"configuration"}), words
