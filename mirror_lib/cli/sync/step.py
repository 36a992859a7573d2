"""Runs a sync step of a flow for a command: load, select topics, read both clusters under a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

from mirror_lib.cli.output import Output
from mirror_lib.config import FlowConfig, flow_topology
from mirror_lib.ledger import Ledger, existing_ledger, load_flow_as_it_runs
from mirror_lib.topology import FlowTopology

_Done = TypeVar("_Done")


def run_step(
    output: Output,
    config: Path,
    flow: str,
    topics: Sequence[str] | None,
    step: Callable[[FlowConfig, FlowTopology, Ledger | None], _Done],
    *,
    progress: str = "Reading both clusters of",
) -> _Done:
    """Return the result of a step, limited to topics.

    Args:
        step: plans or applies; a ledger that does not exist is not created.
        progress: what is being done, as text before the flow's name.

    Raises:
        MirrorError: as the step.
    """
    file, settings = load_flow_as_it_runs(config, flow)
    topology = flow_topology(settings, topics or ())
    with output.progress(f"{progress} {settings.flow}"), existing_ledger(file) or nullcontext() as known:
        return step(settings, topology, known)
