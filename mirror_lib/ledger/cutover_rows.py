"""Rows of cutovers that runs and metrics read: plain values. The feature `cutover` has the others."""

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
    #: One of `features.cutover.model.CutoverState`.
    state: str
    #: The current or next step, one of `features.cutover.model.Step`.
    step: str
    #: As `features.cutover.model.CutoverDefinition.to_dict` gives it.
    definition: Mapping[str, Any]
    created_at: datetime
    created_by: str
    updated_at: datetime


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
