"""What `mirror plan` says of a flow with the same offsets: how far its new target partitions are filled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mirror_lib.cli import Output
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import RunPlan


def look_at_plan(flow: FlowConfig, plan: RunPlan, _ledger: Ledger | None) -> Callable[[Output], None]:
    """Return what shows the filling that first copies of a plan need; nothing for other flows."""
    return partial(_show, flow.copy_settings.most_holes, plan)


def _show(most: int | None, plan: RunPlan, output: Output) -> None:
    if most is None:
        return
    starts = [each.start for each in (*plan.partitions, *plan.first_seen) if each.copy is None and each.start > 0]
    filled = [start for start in starts if start <= most]
    output.document(
        {"same_offsets": {"partitions": len(filled), "offsets": sum(filled), "refused": len(starts) - len(filled)}}
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
