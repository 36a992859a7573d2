"""After a disaster: the source is there again, and the flow back goes on behind what it has.

What never came to the target stays where it is on the source, and is kept in the ledger. What was written to the target
since then comes home behind it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from mirror_lib.config import FlowConfig
from mirror_lib.errors import PlanChangedError, Where
from mirror_lib.ledger import DISASTER, CutRow, GapRow, GapState, Ledger, with_handovers
from mirror_lib.relay import hold_lock
from mirror_lib.relay.repair import keep_account
from mirror_lib.runbook.failback.failback import prepare_way_back
from mirror_lib.runbook.failback.return_plan import ReturningPartition, ReturnPlan, plan_return
from mirror_lib.runbook.handover import handed_over_rows
from mirror_lib.runbook.states import DisasterState, do

#: Stands in the ledger for the cutover that handed the topics over.
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
    """Hand the topics over to the flow back, each partition to go on behind what the source has; returns what was done.

    All or nothing: where one partition has an error, nothing is changed.

    Args:
        agreed: the fingerprint of the plan that somebody has agreed to.

    Raises:
        RunLockedError: a run of one of both flows is under way.
        PlanChangedError: what the clusters have now is not what was agreed to.
        MirrorError: as `plan_return`; or the ledger or the positions cannot be written.
    """
    run_id = f"after-disaster-{uuid.uuid4()}"
    with ExitStack() as locks:
        for held in (flow, opposite):
            locks.enter_context(
                hold_lock(ledger, flow=str(held.flow), run_id=run_id, lease_seconds=held.run_lease_seconds)
            )
        # Somebody else may have handed the same topics over a moment ago, and the flow back may have begun.
        plan = plan_return(with_handovers(flow, ledger), opposite, topics)
        if plan.errors:
            return plan
        if plan.fingerprint != agreed:
            raise PlanChangedError(
                f"this is not what was agreed to any more: {plan}.",
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
                # One that was interrupted before the topics were handed over has noted it already.
                if _range(loss) not in noted:
                    ledger.record_gap(loss)
        prepare_way_back(flow, opposite, [_cut(each, now) for each in plan.partitions], ledger)
        # Last: from here on the flow back copies them, and this one does no more.
        names = dict.fromkeys((each.source.topic, each.target.topic) for each in plan.partitions)
        ledger.cutovers.hand_over(handed_over_rows(str(flow.flow), names, cutover=_NAMED, since=now, by=by))
    ledger.audits.note(
        by=by,
        action="after-disaster",
        subject=str(flow.flow),
        flow=str(flow.flow),
        detail={"note": note, "partitions": [each.to_dict() for each in plan.partitions]},
    )
    return plan


def _cut(partition: ReturningPartition, now: datetime) -> CutRow:
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
