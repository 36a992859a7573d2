"""Stores observations of the sync steps in the ledger: groups, heartbeats and outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mirror_lib.ledger.observation_guard import log_errors
from mirror_lib.ledger.observed_rows import GroupObservationRow, HeartbeatObservationRow, StepOutcomeRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.group_standing import is_behind
from mirror_lib.sync.groups.model import GroupPlan
from mirror_lib.sync.heartbeats.rules import HeartbeatState, UpstreamHeartbeat
from mirror_lib.sync.intervals import is_due_again
from mirror_lib.topology.names import FlowId

#: Maximum number of rows of a flow's groups: storing them takes a few seconds.
MOST_GROUP_ROWS = 100_000
#: The partition in the row of a group that is skipped as a whole; its topic is "".
WHOLE_GROUP = -1
_FRESH = HeartbeatState.FRESH.value
#: Counts of differences in the result of a step; failures are not among them.
_DIFFERENCES = ("changed", "created", "deleted")


def save_groups(ledger: Ledger, plan: GroupPlan, *, applied: bool) -> None:
    """Store the state of a flow's groups; never fails.

    Args:
        plan: of the whole flow.
        applied: True if the plan was applied.
    """
    flow = str(plan.flow)
    with log_errors(flow, "the offsets of its consumer groups"):
        ledger.observations.save_groups(flow, group_rows(plan, datetime.now(UTC), applied=applied))


def group_rows(
    plan: GroupPlan, now: datetime, *, applied: bool, limit: int = MOST_GROUP_ROWS
) -> tuple[GroupObservationRow, ...]:
    """The rows of a plan. If there are too many, keep one row of each group among those in sync.

    Args:
        limit: maximum number of rows; rows with a reason come first.
    """
    flow = str(plan.flow)
    skipped_groups = [
        GroupObservationRow(
            flow=flow,
            group=finding.group,
            topic="",
            partition=WHOLE_GROUP,
            target_topic="",
            observed_at=now,
            reason=finding.reason.value,
            what=finding.what or None,
        )
        for finding in plan.findings
    ]
    rows = [
        GroupObservationRow(
            flow=flow,
            group=row.group,
            topic=row.source.topic,
            partition=row.source.partition,
            target_topic=row.target.topic,
            observed_at=now,
            upstream=row.upstream,
            target_offset=row.target_offset,
            target_committed=row.target_committed,
            duplicates=row.duplicates,
            skipped=row.skipped,
            reason=None if reason is None else reason.value,
            what=row.what or None,
        )
        for row in plan.rows
        for reason in (row.reason if applied else row.present_reason,)
    ]
    return _limit([*skipped_groups, *rows], limit)


def _limit(rows: list[GroupObservationRow], limit: int) -> tuple[GroupObservationRow, ...]:
    if len(rows) <= limit:
        return tuple(rows)
    with_reason = [row for row in rows if row.reason is not None]
    groups_shown = {row.group for row in with_reason}
    # The kept row of a group in sync has 0 duplicates and skipped records, so that the sums stay correct.
    silent = {row.group: replace(row, duplicates=0, skipped=0) for row in rows if row.group not in groups_shown}
    return (*with_reason, *silent.values())[:limit]


def save_heartbeats(ledger: Ledger, flow: FlowId, upstreams: Iterable[UpstreamHeartbeat]) -> None:
    """Store the state of heartbeats on a flow's target; never fails.

    Args:
        upstreams: empty if no heartbeats are written: then stored rows are deleted.
    """
    with log_errors(str(flow), "its heartbeats"):
        ledger.observations.save_heartbeats(str(flow), heartbeat_rows(flow, upstreams, datetime.now(UTC)))


def heartbeat_rows(
    flow: FlowId, upstreams: Iterable[UpstreamHeartbeat], now: datetime
) -> tuple[HeartbeatObservationRow, ...]:
    """A row for each cluster upstream."""
    return tuple(
        HeartbeatObservationRow(
            flow=str(flow),
            pair=str(FlowId(upstream.cluster, flow.target)),
            observed_at=now,
            emitted_at=_time(upstream.newest_ms),
            verdict=upstream.state.value,
            detail=upstream.problem or None,
        )
        for upstream in upstreams
    )


def _time(milliseconds: int | None) -> datetime | None:
    """The time in a heartbeat, whose producer may write any number."""
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def save_step(ledger: Ledger, flow: str, step: str, done: Mapping[str, Any]) -> None:
    """Store the outcome of a step; never fails.

    A step that was skipped because it is not due keeps its last outcome.

    Args:
        flow: its name.
        step: the name of the DAG's task.
        done: the result of the step.
    """
    if done["skipped"] is not None and is_due_again(done["skipped"]):
        return
    with log_errors(flow, f"the outcome of {step}"):
        ledger.observations.save_step(step_row(flow, step, done, datetime.now(UTC)))


def step_row(flow: str, step: str, done: Mapping[str, Any], now: datetime) -> StepOutcomeRow:
    """The row of an outcome."""
    differences = sum(done[name] for name in _DIFFERENCES if name in done) + done["failed"]
    if "reasons" in done:
        counted = (count for reason, count in done["reasons"].items() if reason != _FRESH and is_behind(reason))
        differences = sum(counted)
    return StepOutcomeRow(
        flow=flow,
        step=step,
        finished_at=now,
        differences=differences,
        failed=done["failed"],
        skipped=done["skipped"],
        summary={name: value for name, value in done.items() if name != "skipped"},
    )
