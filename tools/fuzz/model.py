"""Targets of fuzzing, and findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any, ClassVar


class Target(ABC):
    """One kind of external input.

    A case is only its bytes: everything else that it needs (settings, a password) is derived from them, so that the
    bytes alone reproduce it.
    """

    #: As on the command line.
    name: ClassVar[str]
    #: What it is, for the report.
    what: ClassVar[str]
    #: The errors that the module documents; any other exception is a failure.
    errors: ClassVar[tuple[type[Exception], ...]] = ()
    #: Its share of the cases of a round over all targets; less if it is slow.
    weight: ClassVar[float] = 1.0

    @abstractmethod
    def make(self, random: Random) -> bytes:
        """Return a case; the same for the same state of `random`."""

    @abstractmethod
    def run(self, data: bytes) -> str:
        """Parse it; return the outcome in a few words. Raises one of `errors`, or `Wrong`."""


class Wrong(AssertionError):
    """A parser returned something that cannot be right."""


class Kind(StrEnum):
    """Ways in which a case can fail."""

    ERROR = "untyped error"
    WRONG = "wrong answer"
    MEMORY = "too much memory"
    SLOW = "too slow"
    HANG = "hang"
    DEATH = "process died"


@dataclass(frozen=True, slots=True)
class Failure:
    """One case that failed, with everything to reproduce it."""

    target: str
    case: int
    seed: int
    kind: Kind
    detail: str
    data: bytes

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; the bytes are in a separate file."""
        return {
            "target": self.target,
            "case": self.case,
            "seed": self.seed,
            "kind": self.kind.value,
            "detail": self.detail,
            "bytes": len(self.data),
        }


@dataclass(slots=True)
class TargetResult:
    """All cases of one target."""

    name: str
    what: str
    cases: int = 0
    seconds: float = 0.0
    #: Peak memory of its process, above that before the first case.
    peak_bytes: int = 0
    #: Outcome -> number of cases.
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `--json`."""
        return {
            "name": self.name,
            "cases": self.cases,
            "seconds": round(self.seconds, 2),
            "peak_bytes": self.peak_bytes,
            "outcomes": dict(self.outcomes.most_common()),
            "failures": [failure.to_dict() for failure in self.failures],
        }
