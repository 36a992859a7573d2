"""Rows of cutovers in the ledger: plain values."""

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
    #: The current or next step, one of `runbook.model.Step`.
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
    #: The gates that were checked, as `runbook.model.Gate.to_dict` returns them.
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
    """One process that runs or rolls back a cutover, for as long as it holds the cutover's lock."""

    cutover: str
    #: The run that the lock names.
    id: str
    #: `run` or `rollback`.
    kind: str
    by: str
    #: The same as in the lock.
    holder: str
    since: datetime
    #: The current or last step; None before the process has observed the clusters.
    step: str | None = None
    ended_at: datetime | None = None
    #: The cutover's state at the end of the process, one of `runbook.model.CutoverState`; `died` if it recorded none.
    ended_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """A question that one attempt at a step asks an operator. Open until it is answered or ended."""

    cutover: str
    step: str
    attempt: int
    #: The process that asks.
    carrier: str
    asked_at: datetime
    #: When that process stops waiting.
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
    """The cut of one partition: both sides hold the same records up to here. Failback starts at these offsets."""

    cutover: str
    topic: str
    partition: int
    target_topic: str
    #: The log end offset of either side at the cut.
    source_end: int
    target_end: int
    cut_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRow:
    """A source topic that a flow no longer copies because a cutover has moved its writers to the target."""

    flow: str
    topic: str
    target_topic: str
    cutover: str
    since: datetime
    by: str
