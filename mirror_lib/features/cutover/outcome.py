"""The outcome of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.features.cutover.model import Gate, Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """The checked gates, and what was measured or done, as plain data."""

    gates: tuple[Gate, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: An earlier step that, by these findings, does not hold any more.
    undoes: Step | None = None

    @property
    def has_passed(self) -> bool:
        """True if all gates hold."""
        return all(gate.passed for gate in self.gates)
