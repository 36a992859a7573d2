"""`mirror backfill` on brokers: the estimate, and the job that the command starts."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.relay.backfill.define import prepare_backfill, request_of
from mirror_lib.relay.job.command import main
from mirror_lib.relay.planning.facts import FlowClusters
from tests.support.flows import Flow, copy_here
from tests.support.kafka import consume, records
from tests.support.mirrored_topic import MirroredTopic


def mirror(flow: Flow, *words: str) -> tuple[int, dict[str, Any]]:
    """What the command says as JSON."""
    result = CliRunner().invoke(
        app, ["backfill", *words, "--config", str(flow.path), "--flow", "A->B", "--json"], catch_exceptions=False
    )
    return result.exit_code, json.loads(result.stdout)


def test_a_plan_tells_what_is_left_and_changes_nothing(mirrored: MirroredTopic) -> None:
    mirrored.create(records(30), partitions=2)
    flow = mirrored.flow()
    words = ["--topics", mirrored.name, "--from", "offset 10", "--into-suffix", ".old", "--bytes-per-second", "100"]

    code, told = mirror(flow, "plan", *words)

    assert code == 0
    assert told["backfill"]["offsets"] == 20
    assert told["backfill"]["defined"] is False
    # The other partition is empty.
    assert [(each["partition"], each["from"], each["to"]) for each in told["backfill"]["partitions"]] == [(0, 10, 30)]
    assert told["backfill"]["minutes"] is not None
    # The table has the numbers of the document and of the options: the end is exclusive.
    options = ["--config", str(flow.path), "--flow", "A->B"]
    shown = CliRunner().invoke(app, ["backfill", "plan", *words, *options]).stdout
    (row,) = [line.split() for line in shown.splitlines() if line.startswith(f"{mirrored.name} ")]
    assert row[1:6] == ["0", f"A.{mirrored.name}.old", "10", "30", "10"]
    assert flow.ledger.backfills.of_flow("A->B") == ()


def test_the_job_runs_a_backfill_that_was_defined_and_the_plan_then_says_that_it_is_done(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(30))
    flow = mirrored.flow()
    request = request_of(flow.config, [mirrored.name], "earliest", "offset 20", into=f"{mirrored.name}-old")
    with FlowClusters.connect(flow.config) as clusters:
        prepare_backfill(flow.config, clusters, flow.ledger, request, "history")

    exit_code = main(
        [f"--config={flow.path}", "--flow=A->B", "--backfill=history", f"--report={mirrored.folder}/report.json"],
        lambda _flow: copy_here,
    )

    assert exit_code == 0
    report = json.loads((mirrored.folder / "report.json").read_text())
    assert (report["flow"], report["records"]) == ("A->B#backfill-history", 20)
    assert len(consume(mirrored.target, f"{mirrored.name}-old")) == 20
    code, told = mirror(flow, "plan", "--name", "history")
    assert (code, told["backfill"]["defined"], told["backfill"]["offsets"]) == (0, True, 0)


def test_what_cannot_be_meant_is_wrong_usage(mirrored: MirroredTopic) -> None:
    mirrored.create()
    flow = mirrored.flow()

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
        code, told = mirror(flow, "plan", *words)

        assert code == 2, words
        assert told["error"]["reason"] == "configuration", words
