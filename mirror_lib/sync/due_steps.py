"""Decides which sync steps of a flow are due, from the configuration and the times in the ledger."""

from __future__ import annotations

from datetime import datetime

from mirror_lib.config import FlowConfig
from mirror_lib.ledger import Ledger
from mirror_lib.sync.due import Interval, SyncStep


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
