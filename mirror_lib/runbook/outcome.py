"""What a step comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.runbook.model import Gate, Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """The gates that were looked at, and what was measured or done, as plain data."""

    gates: tuple[Gate, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: An earlier step that does not hold any more by what was found.
    undoes: Step | None = None

    @property
    def passed(self) -> bool:
        """Whether all gates hold."""
        return all(gate.passed for gate in self.gates)
