"""Tests between two versions, and their results. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The parts of the flow in the order in which they are tried.
STEPS = ("topics", "copy", "old format", "configs", "ACLs", "groups", "second run", "heartbeats")


@dataclass(frozen=True, slots=True)
class StepResult:
    """One part of the flow: its error, or None."""

    step: str
    failure: str | None = None
    #: What this pair of versions does not support, and the consequence.
    degraded: tuple[str, ...] = ()

    @property
    def cell(self) -> str:
        """For the table."""
        if self.failure is not None:
            return "FAILED"
        return "ok*" if self.degraded else "ok"


@dataclass(slots=True)
class PairResult:
    """All parts of the flow between two versions."""

    source: str
    target: str
    steps: list[StepResult] = field(default_factory=list)
    #: Limits because of the clusters' versions, as in the preflight of a run.
    limits: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if every part was tested and succeeded."""
        return [step.step for step in self.steps] == list(STEPS) and all(step.failure is None for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "source": self.source,
            "target": self.target,
            "ok": self.ok,
            "steps": {
                step.step: {"result": step.cell, "failure": step.failure, "degraded": list(step.degraded)}
                for step in self.steps
            },
            "limits": list(self.limits),
            "seconds": round(self.seconds, 1),
        }
