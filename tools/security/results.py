"""Tests with one login mechanism, and their results. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

#: The tasks of a flow in the order in which they are tried.
TASKS = ("topics", "copy", "configs", "ACLs", "groups", "heartbeats", "verify", "observe")


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One task: its error, or None."""

    task: str
    failure: str | None = None

    @property
    def cell(self) -> str:
        """For the table."""
        return "ok" if self.failure is None else "FAILED"


@dataclass(slots=True)
class WayResult:
    """All tasks of one flow whose clients log in one way."""

    way: str
    tasks: list[TaskResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if every task was tested and succeeded."""
        return [each.task for each in self.tasks] == list(TASKS) and all(each.failure is None for each in self.tasks)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "way": self.way,
            "ok": self.ok,
            "tasks": {each.task: each.failure or "ok" for each in self.tasks},
            "seconds": round(self.seconds, 1),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        tasks = [TaskResult(task, None if said == "ok" else said) for task, said in data["tasks"].items()]
        return cls(data["way"], tasks, data["seconds"])
