"""Plain values of a cutover: its topics and groups, its steps, and the results of each step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from mirror_lib.errors import ConfigurationError
from mirror_lib.former_names import with_present_names
from mirror_lib.topology.java_regex import compile_list

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Step(StrEnum):
    """The steps of a cutover; `order.STEPS` has their order."""

    #: What moves: topics, partitions, groups and staged grants as they are now.
    INVENTORY = "inventory"
    #: Whether it can move: permissions, limits, gaps, retention, names, other flows.
    PREFLIGHT = "preflight"
    #: Copy and compare while clients work, and report how long the writers will have to be stopped.
    REHEARSE = "rehearse"
    #: The operator stops the writers and confirms it; until then the copy keeps the lag small.
    FREEZE = "freeze"
    #: Rounds until everything is copied and the source is quiet for a while; then the cut is recorded.
    DRAIN = "drain"
    #: The target equals the source up to the cut.
    VERIFY = "verify"
    #: The groups continue on the target at their source positions.
    TRANSLATE = "translate"
    #: The operator checks all gates and approves.
    APPROVE = "approve"
    #: The flow stops copying these topics, and failback is prepared.
    SWITCH = "switch"
    #: Staged write grants are created on the target: from here on clients may write there.
    RELEASE = "release"
    #: Clients arrive on the target and none is left on the source.
    WATCH = "watch"
    #: The report is final.
    FINISH = "finish"


class Confirmation(StrEnum):
    """The steps that pass when the operator confirms them."""

    #: The writers are stopped.
    FREEZE = Step.FREEZE.value
    #: The clients may be switched over.
    APPROVE = Step.APPROVE.value


class Style(StrEnum):
    """Whether writers or readers move first."""

    #: Writers and readers are stopped in one window.
    TOGETHER = "together"
    #: Readers move while records are still copied, writers follow.
    CONSUMERS_FIRST = "consumers-first"
    #: Writers move; readers read the source to its end and follow.
    PRODUCERS_FIRST = "producers-first"


class StepState(StrEnum):
    """The state of an attempt at a step."""

    RUNNING = "running"
    #: An operator has to confirm or approve.
    WAITING = "waiting"
    PASSED = "passed"
    #: A gate does not hold, or an error occurred; the step can be repeated.
    FAILED = "failed"
    #: It had passed and was undone, or the clusters show that it no longer holds.
    UNDONE = "undone"


class CutoverState(StrEnum):
    """The state of a cutover as a whole."""

    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"
    FINISHED = "finished"
    ROLLED_BACK = "rolled-back"

    @property
    def has_ended(self) -> bool:
        """True if nothing more will be done."""
        return self in (CutoverState.FINISHED, CutoverState.ROLLED_BACK)


class Fence(StrEnum):
    """How writers are fenced from the source."""

    #: The operator stops them.
    OPERATOR = "operator"
    #: ACLs on the source deny writing to the topics, until a rollback or failback.
    ACL = "acl"


class VerifyScope(StrEnum):
    """How much of the copy the rehearsal compares; the tail since then is always compared in full."""

    FULL = "full"
    #: What was never compared before.
    RECENT = "recent"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverDefinition:
    """The operator's settings for a cutover, fixed when it is created. Durations in seconds."""

    name: str
    #: `A->B`.
    flow: str
    #: Java regexes for source topics; never more than the flow selects.
    topics: tuple[str, ...]
    #: Java regexes for groups; never more than the flow selects.
    groups: tuple[str, ...] = (".*",)
    style: Style = Style.TOGETHER
    fence: Fence = Fence.OPERATOR
    #: Principals that the fence denies writing, such as `User:app`. A wildcard would include the failback flow.
    writers: tuple[str, ...] = ()
    scope: VerifyScope = VerifyScope.RECENT
    #: Maximum number of duplicates (records) of all groups together.
    max_duplicates: int = 0
    #: Maximum number of records skipped by all groups together: they are not on the target.
    max_skipped: int = 0
    #: Java regexes for whole names of groups and transactional ids of whose topics only some move.
    may_split: tuple[str, ...] = ()
    #: Java regexes for whole names of groups whose `auto.offset.reset` may decide where they start in partitions in
    #: which they have no offset.
    may_reset: tuple[str, ...] = ()
    #: How long the source must have been quiet. Writers with cached metadata retry for some seconds after they lost the
    #: right to write.
    quiet_seconds: float = 10.0
    #: Time limit of the drain.
    drain_seconds: float = 600.0
    #: Maximum lag (records) at the beginning of the freeze.
    max_lag: int = 10_000
    #: Time limit for clients to appear on the target; 0 does not wait for them.
    watch_seconds: float = 300.0
    #: True if failback must be possible.
    require_failback: bool = True
    #: Also release grants that were since removed on the source to lock out its writers.
    with_withdrawn: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"{self.name!r} is not a valid name of a cutover.",
                action="Use up to 100 letters, digits, dots, underscores and hyphens.",
            )
        if not self.topics:
            raise ConfigurationError(
                "a cutover needs topics.", action="Enter topics, or `.*` for all topics of the flow."
            )
        if self.fence is Fence.ACL and not self.writers:
            raise ConfigurationError(
                "a fence with ACLs needs the principals of the writers.",
                action="Enter them as writers, for example User:app.",
            )
        for patterns in (self.topics, self.groups, self.may_split, self.may_reset):
            try:
                if patterns:
                    compile_list(patterns)
            except ValueError as error:
                raise ConfigurationError(f"{error}.", action="Correct the regular expression.") from error
        for name in ("max_duplicates", "max_skipped", "quiet_seconds", "drain_seconds", "max_lag", "watch_seconds"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} must not be negative.", action="Use 0 or more.")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the ledger and `--json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; settings of a newer version are ignored, missing ones have their defaults."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in with_present_names(data).items() if name in known}
        for name in ("topics", "groups", "writers", "may_split", "may_reset"):
            if name in values:
                values[name] = tuple(values[name])
        for name, kind in (("style", Style), ("fence", Fence), ("scope", VerifyScope)):
            if name in values:
                values[name] = kind(values[name])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition, checked on the live clusters."""

    name: str
    passed: bool
    #: The finding, as a sentence with its numbers.
    what: str
    #: What to do if it is not passed.
    action: str = ""

    def __str__(self) -> str:
        todo = f" {self.action}" if self.action and not self.passed else ""
        return f"{'passed' if self.passed else 'FAILED'} {self.name}: {self.what}{todo}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the ledger and `--json`."""
        return {"name": self.name, "passed": self.passed, "what": self.what, "action": self.action}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(data["name"], data["passed"], data["what"], data.get("action", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a step."""

    step: Step
    number: int
    state: StepState
    by: str
    started_at: datetime
    finished_at: datetime | None = None
    gates: tuple[Gate, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None

    @property
    def seconds(self) -> float | None:
        """Duration; None while it is running."""
        return None if self.finished_at is None else (self.finished_at - self.started_at).total_seconds()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "step": self.step.value,
            "attempt": self.number,
            "state": self.state.value,
            "by": self.by,
            "started_at": self.started_at.isoformat(),
            "finished_at": None if self.finished_at is None else self.finished_at.isoformat(),
            "gates": [gate.to_dict() for gate in self.gates],
            "facts": dict(self.facts),
            "error": None if self.error is None else dict(self.error),
        }
