"""`mirror demo`: the main job on this machine, and `mirror demo stop`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from mirror_lib.cli import JsonOption, Output, Progress, begin_with, report_errors
from mirror_lib.features.demo.demo import DemoOutcome, Steps, run_demo, stop_demo
from mirror_lib.features.demo.manifest import FEATURE

app = typer.Typer(name="demo", help=FEATURE.commands["demo"].help)
_COLUMNS = ("topic", "records", "MB", "seconds", "on the target", "expected", "equal")


@app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    records: Annotated[int, typer.Option(min=1, help="Number of records to produce, across all topics.")] = 300_000,
    as_json: JsonOption = False,
) -> None:
    """Start brokers and Airflow, produce records, trigger the flow's DAG and show what it copied."""
    if context.invoked_subcommand is not None:
        return
    with report_errors(as_json) as output:
        outcome = run_demo(records, _steps(output))
        _show(output, outcome)
        output.exit_code = 0 if outcome.proven else 1


@app.command()
@begin_with(report_errors)
def stop(output: Output) -> None:
    """Stop Airflow and the brokers; their data is kept for the next demo."""
    with output.progress("Stopping"):
        ended = stop_demo()
    output.document({"ended": ended})
    output.note(f"Stopped: {', '.join(ended)}." if ended else "Nothing was running.")


def _steps(output: Output) -> Steps:
    @contextmanager
    def step(text: str, total: float | None) -> Iterator[Progress]:
        with output.progress(text, total) as progress:
            yield progress
        # The progress bar disappears when it is done; the result stays visible.
        output.note(f"- {text}: done")

    return step


def _show(output: Output, outcome: DemoOutcome) -> None:
    rows = [
        (
            proof.total.topic,
            proof.total.records,
            round(proof.total.bytes / 1e6, 2),
            round(proof.total.seconds, 2),
            proof.on_target,
            proof.expected,
            proof.proven,
        )
        for proof in outcome.proofs
    ]
    output.table("copied", _COLUMNS, rows)
    output.values(
        "run",
        {
            "written": sum(outcome.written.values()),
            "copied": outcome.records,
            "seconds": round(outcome.seconds, 1),
            "configuration": str(outcome.config),
            "page of the run": outcome.run_page,
            "Airflow": outcome.airflow_url,
        },
    )
    output.note("Run it again: new orders are produced and only those are copied. Stop all processes: ./run stop")
