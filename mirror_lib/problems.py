"""Errors and warnings of a configuration file, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, Self

from pydantic import BaseModel, ConfigDict, field_validator

from mirror_lib.printable import LINES, Lines, printable


class Severity(StrEnum):
    """The severity of a finding.

    An error stops a flow from running. A warning means that a setting has no effect here, or another than intended.
    A setting that MM2 ignores, too, has no effect: the line can be deleted, and never stops anything.
    """

    ERROR = "error"
    WARNING = "warning"
    NO_EFFECT = "no effect"


class Setting(Protocol):
    """A setting as it is written in the file."""

    @property
    def key(self) -> str | None:
        """None for a default."""

    @property
    def line(self) -> int | None:
        """None for a default."""


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

    @field_validator("message", "suggestion", mode="before")
    @classmethod
    def _printable(cls, text: str | None) -> str | None:
        """Escape line breaks: a key or a value with one would forge another problem."""
        return None if text is None else printable(text, LINES if isinstance(text, Lines) else "")

    @classmethod
    def error(cls, message: str, setting: Setting | None = None, suggestion: str | None = None) -> Self:
        """Return an error of a setting, or of the file."""
        return cls._of(Severity.ERROR, message, setting, suggestion)

    @classmethod
    def warning(cls, message: str, setting: Setting | None = None, suggestion: str | None = None) -> Self:
        """Return a warning about a setting, or about the file."""
        return cls._of(Severity.WARNING, message, setting, suggestion)

    @classmethod
    def _of(cls, severity: Severity, message: str, setting: Setting | None, suggestion: str | None) -> Self:
        key, line = (None, None) if setting is None else (setting.key, setting.line)
        return cls(severity=severity, message=message, key=key, line=line, suggestion=suggestion)
