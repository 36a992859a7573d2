"""Problems of one key of transforms."""

from __future__ import annotations

from mirror_lib.problems import Problem, Severity


def problem(severity: Severity, key: str, sentence: str, advice: str) -> Problem:
    """Return a problem of one key."""
    return Problem(severity=severity, message=f"{key}: {sentence}", key=key, suggestion=advice)
