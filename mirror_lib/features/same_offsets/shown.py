"""What `mirror plan` says of a flow with the same offsets: how far new targets are filled, and what holes follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mirror_lib.cli import Output
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.features.same_offsets.expected_holes import ExpectedHoles, estimate
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.planning.model import RunPlan


def look_at_plan(flow: FlowConfig, plan: RunPlan, _ledger: Ledger | None) -> Callable[[Output], None]:
    """Return what shows the filling that a plan needs; nothing for other flows."""
    most = flow.copy_settings.most_holes
    if most is None:
        return lambda _: None
    return partial(show, most, plan, estimate(flow, plan.partitions) if plan.partitions else None)


def show(most: int, plan: RunPlan, holes: ExpectedHoles | None, output: Output) -> None:
    """Show it.

    Args:
        most: maximum number of offsets that are filled at the start of a partition.
        plan: of the run.
        holes: None if they are not known.
    """
    starts = [each.start for each in (*plan.partitions, *plan.first_seen) if each.copy is None and each.start > 0]
    filled = [start for start in starts if start <= most]
    output.document(
        {
            "same_offsets": {
                "partitions": len(filled),
                "offsets": sum(filled),
                "refused": len(starts) - len(filled),
                "holes": None if holes is None else holes.total,
                "holes_seconds": None if holes is None else round(holes.seconds),
            }
        }
    )
    if holes is not None and holes.total:
        output.note(
            f"mirror.offsets=same: about {counted(holes.total, 'offset')} have no record at the source (estimated from "
            f"some places of its logs) and take a transaction each: about {duration(holes.seconds)}."
        )
    if filled:
        output.note(
            f"mirror.offsets=same: new targets of {counted(len(filled), 'partition')} are filled up to the source's "
            f"first offsets when topics are created: {counted(sum(filled), 'record')} without content, deleted at once."
        )
    if refused := len(starts) - len(filled):
        output.note(
            f"mirror.offsets=same: {counted(refused, 'partition')} will be refused: the source begins behind offset "
            f"{most:,} (mirror.offsets.pad.max.records), the last one at {max(starts):,}."
        )
