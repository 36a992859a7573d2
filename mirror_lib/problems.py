"""What is wrong, or doubtful, with a configuration file, as values."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """An error stops a flow from running; a warning says that something has no effect or another one than meant."""

    ERROR = "error"
    WARNING = "warning"


class Problem(BaseModel):
    """One finding in a configuration file."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    severity: Severity
    message: str
    key: str | None = None
    line: int | None = None
    suggestion: str | None = None
