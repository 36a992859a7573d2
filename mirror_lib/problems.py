"""Errors and warnings of a configuration file, as values."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Severity(StrEnum):
    """The severity of a finding.

    An error stops a flow from running. A warning means that a setting has no effect here, or another than intended.
    A setting that MM2 ignores, too, has no effect: the line can be deleted, and never stops anything.
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
    #: The correct key, for a misspelt one.
    rename_to: str | None = None
