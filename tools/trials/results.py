"""The result of each trial. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tools.trials.model import Expected, Found, joined


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One trial."""

    name: str
    by: str
    expected: Expected | None = None
    found: Found | None = None
    differences: tuple[str, ...] = ()
    #: Why the copy could not be made, or not be audited.
    failure: str = ""
    seconds: float = 0.0
    audit_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if the audit found exactly what is expected."""
        return self.found is not None and not self.failure and not self.differences

    @property
    def verdict(self) -> str:
        """A cell of the table."""
        if self.ok:
            return "as expected"
        return "DIFFERS" if self.differences else "FAILED"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "name": self.name,
            "by": self.by,
            "ok": self.ok,
            "exit_code": None if self.found is None else self.found.exit_code,
            "equal": None if self.found is None else self.found.equal,
            "expected": None if self.expected is None else [str(each) for each in joined(self.expected.findings)],
            "found": None if self.found is None else [str(each) for each in joined(self.found.findings)],
            "differences": list(self.differences),
            "failure": self.failure,
            "seconds": round(self.seconds, 1),
            "audit_seconds": round(self.audit_seconds, 1),
        }
