"""All pairs of versions, one after the other: at most three clusters run at the same time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tools.versions.clusters import Log, Side, running
from tools.versions.results import PairResult
from tools.versions.whole_flow import WholeFlow


def run(sources: Sequence[str], targets: Sequence[str], folder: Path, results: list[PairResult], log: Log) -> None:
    """Test every pair; each result is added to `results` at once, so that an interruption loses nothing.

    Raises:
        MirrorError: a cluster could not be fetched or started.
    """
    with ExitStack() as open_targets:
        sides = [
            open_targets.enter_context(running(_alias("to", version), version, folder, log)) for version in targets
        ]
        for version in sources:
            with running(_alias("from", version), version, folder, log) as source:
                for target in sides:
                    _try(source, target, folder, results, log)


def _try(source: Side, target: Side, folder: Path, results: list[PairResult], log: Log) -> None:
    result = PairResult(source.version, target.version)
    results.append(result)
    log(f"{source.version} -> {target.version}")
    began = time.monotonic()
    home = folder / f"{source.alias}-{target.alias}"
    home.mkdir()
    with WholeFlow(source, target, home) as flow:
        for step in flow.steps():
            result.steps.append(step)
            log(f"  {step.step}: {step.failure or step.cell}")
        result.limits = flow.limits()
    result.seconds = time.monotonic() - began


def _alias(role: str, version: str) -> str:
    """Return an alias without the dot, which would separate it from its topics."""
    return f"{role}{version.replace('.', '')}"
