"""Decides which sync steps of a flow are due, from the configuration and the times in the ledger, and runs them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mirror_lib.config.model import FlowConfig
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.intervals import Interval, SyncStep

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a sync step has done."""

    #: Plain data: counts and errors.
    report: Mapping[str, Any]
    #: True if changes were made, and everything that the flow selects was synced, so that the interval restarts.
    complete: bool


def run_if_due(
    flow: FlowConfig,
    step: SyncStep,
    ledger: Ledger,
    run: Callable[[], StepResult],
    *,
    dry_run: bool,
    at_once: bool,
    counts: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Run a step of a scheduled run at MM2's interval.

    Args:
        at_once: ignore the interval; a disabled step stays disabled.
        counts: those that the report of a skipped step has, too.

    Returns:
        The step's report; with `skipped` if it was not due.
    """
    now = datetime.now(UTC)
    why_not = why_not_due(flow, step, ledger, now, at_once=at_once)
    if why_not is not None:
        _log.info("Flow %s: %s are skipped: %s.", flow.flow, step.value, why_not)
        return {"dry_run": dry_run, "skipped": why_not, "problems": [], "failed": 0, **dict.fromkeys(counts, 0)}
    done = run()
    if done.complete:
        ledger.note_sync(str(flow.flow), step, now)
    return {"dry_run": dry_run, "skipped": None, **done.report}


def why_not_due(
    flow: FlowConfig, step: SyncStep, ledger: Ledger, now: datetime, *, at_once: bool = False
) -> str | None:
    """Return why a step is skipped now, as text; None if it is due.

    Args:
        at_once: ignore its interval; a disabled step stays disabled.
    """
    if step in (SyncStep.CHECKPOINTS, SyncStep.GROUP_OFFSETS) and (why_not := why_not_emitted(flow)):
        return why_not
    last = None if at_once else ledger.last_sync(str(flow.flow), step)
    return interval_of(flow, step).why_not(last, now)


def why_not_emitted(flow: FlowConfig) -> str | None:
    """Return why the flow emits no checkpoints, as text; None if it does (mm2 `MirrorCheckpointConfig.validate`)."""
    if not flow.emit_checkpoints_enabled:
        return "emit.checkpoints.enabled is false"
    if not flow.emit_offset_syncs_enabled:
        return "emit.offset-syncs.enabled is false, and groups are translated by offset-syncs"
    return None


def interval_of(flow: FlowConfig, step: SyncStep) -> Interval:
    """The enabled flag and interval of a step."""
    match step:
        case SyncStep.TOPIC_CONFIGS:
            name, enabled, seconds = (
                "sync.topic.configs",
                flow.sync_topic_configs_enabled,
                flow.sync_topic_configs_interval_seconds,
            )
        case SyncStep.TOPIC_ACLS:
            name, enabled, seconds = (
                "sync.topic.acls",
                flow.sync_topic_acls_enabled,
                flow.sync_topic_acls_interval_seconds,
            )
        case SyncStep.CHECKPOINTS:
            name, enabled, seconds = (
                "emit.checkpoints",
                flow.emit_checkpoints_enabled,
                flow.emit_checkpoints_interval_seconds,
            )
        case SyncStep.GROUP_OFFSETS:
            name, enabled, seconds = (
                "sync.group.offsets",
                flow.sync_group_offsets_enabled,
                flow.sync_group_offsets_interval_seconds,
            )
    return Interval(f"{name}.enabled", enabled, f"{name}.interval.seconds", seconds)
