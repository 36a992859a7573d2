"""What the ledger keeps of cutovers: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverRow:
    """One cutover of some topics and groups of a flow."""

    name: str
    flow: str
    #: One of `runbook.model.CutoverState`.
    state: str
    #: The step that is under way or comes next, one of `runbook.model.Step`.
    step: str
    #: As `runbook.model.CutoverDefinition.to_dict` gives it.
    definition: Mapping[str, Any]
    created_at: datetime
    created_by: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverStepRow:
    """One attempt at one step."""

    cutover: str
    step: str
    #: From 1.
    attempt: int
    #: One of `runbook.model.StepState`.
    state: str
    #: The gates that were looked at, as `runbook.model.Gate.to_dict` gives them.
    gates: list[dict[str, Any]]
    #: What the step measured and did.
    facts: Mapping[str, Any]
    by: str
    started_at: datetime
    finished_at: datetime | None = None
    #: `MirrorError.attributes()`.
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRow:
    """Where one partition was cut: up to here both sides hold the same. The key to the way back."""

    cutover: str
    topic: str
    partition: int
    target_topic: str
    #: The next offset to be written on either side at the moment of the cut.
    source_end: int
    target_end: int
    cut_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRow:
    """A source topic that a flow does not copy any more, because its writers have moved to the target."""

    flow: str
    topic: str
    target_topic: str
    cutover: str
    since: datetime
    by: str
