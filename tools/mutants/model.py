"""A mutant, and the outcome of running the tests against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Kind(StrEnum):
    """What a small fault changes."""

    COMPARISON = "comparison"
    ONE_OFF = "one-off"
    BRANCH = "branch"
    WAIT = "wait"
    CALL = "call"
    FIELD = "field"


class Outcome(StrEnum):
    """Result of the tests on one mutant."""

    #: A unit test failed.
    KILLED_BY_UNIT = "killed by unit tests"
    #: No unit test failed, an integration test did.
    KILLED_BY_INTEGRATION = "killed by integration tests"
    #: No unit test failed; integration tests did not run yet.
    UNIT_ONLY = "not killed by unit tests"
    #: Every test that executes the changed lines passed.
    SURVIVED = "survived"
    #: Nothing that a caller or user can observe differs from the original; `tools/mutants/equivalent.json` says why.
    EQUIVALENT = "equivalent"

    @property
    def is_killed(self) -> bool:
        """True if a test failed."""
        return self in (Outcome.KILLED_BY_UNIT, Outcome.KILLED_BY_INTEGRATION)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small fault: a replacement of a stretch of one file."""

    #: Path, qualified name of the function, kind and change; stays the same while the function does.
    name: str
    group: str
    path: str
    kind: Kind
    #: First and last line of the changed code, from 1.
    first_line: int
    last_line: int
    #: Offsets in bytes of the replaced code.
    start: int
    end: int
    replacement: str

    def apply(self, source: bytes) -> bytes:
        """Return the file with the fault."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant."""

    name: str
    group: str
    kind: Kind
    line: int
    outcome: Outcome
    #: The first test that failed, `time-out`, or the error of the collection.
    by: str = ""
    seconds: float = 0.0
    #: Number of test functions that execute the changed lines.
    unit_tests: int = 0
    integration_tests: int = 0

    def to_dict(self) -> dict[str, Any]:
        """One line of a results file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Read one line of a results file.

        Raises:
            KeyError, ValueError, TypeError: it is no such line.
        """
        return cls(**{**stored, "kind": Kind(stored["kind"]), "outcome": Outcome(stored["outcome"])})
