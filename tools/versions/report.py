"""The results as a table source x target, and below it the limits of versions, each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tools.versions.results import STEPS, PairResult


def print_report(console: Console, results: Sequence[PairResult]) -> None:
    """The table and the sentences."""
    table = Table(title="The whole flow between versions of Kafka", title_justify="left")
    table.add_column("source")
    table.add_column("target")
    for step in STEPS:
        table.add_column(step)
    table.add_column("seconds", justify="right")
    for result in results:
        cells = {step.step: step.cell for step in result.steps}
        table.add_row(result.source, result.target, *(cells.get(step, "-") for step in STEPS), f"{result.seconds:.0f}")
    console.print(table)
    for line in sentences(results):
        console.print(Text(line), soft_wrap=True)


def sentences(results: Sequence[PairResult]) -> Iterator[str]:
    """Yield failures by pair, then skipped parts (*) and limits of versions, each sentence once with its pairs."""
    for result in results:
        for step in result.steps:
            if step.failure is not None:
                yield f"FAILED {result.source} -> {result.target}, {step.step}: {step.failure}"
    said: dict[str, list[str]] = {}
    for result in results:
        for text in (*(f"* {text}" for step in result.steps for text in step.degraded), *result.limits):
            pairs = said.setdefault(text, [])
            pair = f"{result.source} -> {result.target}"
            if pair not in pairs:
                pairs.append(pair)
    for text, pairs in said.items():
        yield f"{text} ({'; '.join(pairs)})"
