"""What is wrong, or doubtful, with a configuration file, as values."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """How bad a finding is.

    An error stops a flow from running. A warning says that something has no effect here, or another one than meant.
    What MM2 ignores as well has no effect: the line can be deleted, and never stops anything.
    """

    ERROR = "error"
    WARNING = "warning"
    NO_EFFECT = "no effect"


class Problem(BaseModel):
    """One finding in a configuration file."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    severity: Severity
    message: str
    key: str | None = None
    line: int | None = None
    suggestion: str | None = None
    #: The whole key that a misspelt one was meant to be.
    rename_to: str | None = None
