"""Parts of responses that several resources share. Every number comes with its time of observation."""

from __future__ import annotations

from datetime import datetime
from math import isinf, isnan
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from mirror_lib.errors import MirrorError


class Answer(BaseModel):
    """A part of a response."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def showing(cls, value: object, **more: object) -> Self:
        """Return the attributes that a value has under the same names, and `more` for all others."""
        return cls(**{name: getattr(value, name) for name in cls.model_fields if name not in more}, **more)


def plain_seconds(value: Any) -> Any:
    """Return a duration as JSON: infinite is "never"."""
    if isinstance(value, float) and isnan(value):
        return None
    return "never" if isinstance(value, float) and isinf(value) else value


#: Seconds; "never" for infinite, null if unknown.
Duration = Annotated[float | Literal["never"] | None, BeforeValidator(plain_seconds)]


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it contains the character NUL, which the ledger cannot store")
    return text


#: User input that every database accepts: Postgres has no text with NUL.
StorableText = Annotated[str, AfterValidator(_storable)]


class Seen(Answer):
    """When something was observed, and when the observation becomes stale."""

    at: datetime
    stale_after_seconds: float


class Problem(Answer):
    """A problem, and what to do."""

    reason: str
    what: str
    action: str = ""

    @classmethod
    def of(cls, error: MirrorError) -> Problem:
        """Return an error as the page shows it."""
        place = f"{error.where}: " if str(error.where) else ""
        return cls(reason=error.reason, what=f"{place}{error.what}", action=error.action)


class May(Answer):
    """The visitor's permissions for a flow."""

    pause: bool
    run: bool
    verify: bool
    decide: bool
