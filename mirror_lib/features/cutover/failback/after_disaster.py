"""After a disaster: the source is back, and the failback flow continues after its last copied records.

Records that never reached the target stay on the source, and the ledger keeps them. Records written to the target since
then are copied back after them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.errors import PlanChangedError, Where
from mirror_lib.features.cutover.failback.failback import prepare_failback
from mirror_lib.features.cutover.failback.return_plan import ReturningPartition, ReturnPlan, plan_return
from mirror_lib.features.cutover.handover import handed_over_rows
from mirror_lib.features.cutover.states.disaster import DisasterState, do
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.features.repair.set_positions import keep_account
from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.ledger.handovers import with_handovers
from mirror_lib.ledger.rows import DISASTER, GapRow, GapState
from mirror_lib.ledger.store import Ledger

#: Name in the ledger, in place of the cutover that handed the topics over.
_NAMED = "after a disaster"


def apply_return(
    flow: FlowConfig,
    opposite: FlowConfig,
    ledger: Ledger,
    topics: Sequence[str],
    *,
    agreed: str,
    by: str,
    note: str | None = None,
) -> ReturnPlan:
    """Hand the topics over to the failback flow, which continues each partition at the source's end; return what was
    done.

    All or nothing: if one partition has an error, nothing is changed.

    Args:
        agreed: the fingerprint of the approved plan.

    Raises:
        RunLockedError: a run of one of the two flows is running.
        PlanChangedError: the state of the clusters differs from the approved plan.
        MirrorError: as `plan_return`; or the ledger or the positions cannot be written.
    """
    run_id = f"after-disaster-{uuid.uuid4()}"
    with ExitStack() as locks:
        for held in (flow, opposite):
            locks.enter_context(
                hold_lock(ledger, flow=str(held.flow), run_id=run_id, lease_seconds=held.run_lease_seconds)
            )
        # The same topics may have been handed over meanwhile, and the failback flow may have begun.
        plan = plan_return(with_handovers(flow, ledger), opposite, topics)
        if plan.errors:
            return plan
        if plan.fingerprint != agreed:
            raise PlanChangedError(
                f"the plan has changed since it was approved: {plan}.",
                where=Where(flow=str(flow.flow)),
                action=do(DisasterState.CHANGED, flow.flow),
            )
        now = datetime.now(UTC)
        noted = {_range(gap) for gap in ledger.gaps(str(flow.flow), limit=None) if gap.cause == DISASTER}
        for each in plan.partitions:
            if each.position is not None:
                keep_account(flow, ledger, each.position, by=by)
            if each.left_behind:
                loss = _loss(flow, each, now, by=by, note=note, run_id=run_id)
                # An attempt that was interrupted before the topics were handed over has recorded it already.
                if _range(loss) not in noted:
                    ledger.record_gap(loss)
        prepare_failback(flow, opposite, [_cut_row(each, now) for each in plan.partitions], ledger)
        # Last: from here on the failback flow copies them, and this flow does not.
        names = dict.fromkeys((each.source.topic, each.target.topic) for each in plan.partitions)
        Cutovers(ledger).hand_over(handed_over_rows(str(flow.flow), names, cutover=_NAMED, since=now, by=by))
    ledger.audits.note(
        by=by,
        action="after-disaster",
        subject=str(flow.flow),
        flow=str(flow.flow),
        detail={"note": note, "partitions": [each.to_dict() for each in plan.partitions]},
    )
    return plan


def _cut_row(partition: ReturningPartition, now: datetime) -> CutRow:
    return CutRow(
        cutover=_NAMED,
        topic=partition.source.topic,
        partition=partition.source.partition,
        target_topic=partition.target.topic,
        source_end=partition.source_end,
        target_end=partition.target_next,
        cut_at=now,
    )


def _range(gap: GapRow) -> tuple[str, int, int, int, str | None]:
    return gap.topic, gap.partition, gap.first_offset, gap.next_offset, gap.topic_id


def _loss(
    flow: FlowConfig, partition: ReturningPartition, now: datetime, *, by: str, note: str | None, run_id: str
) -> GapRow:
    return GapRow(
        id=str(uuid.uuid4()),
        flow=str(flow.flow),
        topic=partition.source.topic,
        partition=partition.source.partition,
        cause=DISASTER,
        first_offset=partition.copied_to,
        next_offset=partition.source_end,
        topic_id=None if partition.position is None else partition.position.topic_id,
        detail=str(partition),
        run_id=run_id,
        found_at=now,
        state=GapState.ACCEPTED.value,
        decided_by=by,
        decided_at=now,
        note=note,
    )
