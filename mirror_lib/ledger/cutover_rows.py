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
class CarrierRow:
    """One process that carries a cutover out, or rolls it back. It lives as long as it holds the cutover's lock."""

    cutover: str
    #: The run that the lock names.
    id: str
    #: `run` or `rollback`.
    kind: str
    by: str
    #: As the lock has it.
    holder: str
    since: datetime
    #: The step that it takes or took; None until it has looked at the clusters again.
    step: str | None = None
    ended_at: datetime | None = None
    #: What the cutover was then, one of `runbook.model.CutoverState`; `died` when it ended without a word.
    ended_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """What one attempt at a step asks a person. Open until it is answered or ended."""

    cutover: str
    step: str
    attempt: int
    #: The process that asks.
    carrier: str
    asked_at: datetime
    #: When that process waits no longer.
    waits_until: datetime | None = None
    #: `yes` or `no`.
    answer: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    note: str | None = None
    ended_at: datetime | None = None
    #: `taken`, `unanswered`, or `died` with the process that asked.
    ended_as: str | None = None


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
