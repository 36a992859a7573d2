"""Pieces of answers that several subjects share. Every number carries the moment at which it was true."""

from __future__ import annotations

from datetime import datetime
from math import isinf, isnan
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from mirror_lib.errors import MirrorError


class Answer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def plain_seconds(value: Any) -> Any:
    """A duration as JSON can tell it: infinite is "never"."""
    if isinstance(value, float) and isnan(value):
        return None
    return "never" if isinstance(value, float) and isinf(value) else value


#: Seconds; "never" for what never comes, null for what is not known.
Duration = Annotated[float | Literal["never"] | None, BeforeValidator(plain_seconds)]


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it has the character NUL, which no ledger can hold")
    return text


#: What people write, as every database takes it: Postgres has no text with NUL.
StorableText = Annotated[str, AfterValidator(_storable)]


class Seen(Answer):
    """When something was looked at, and from when on it says nothing of now."""

    at: datetime
    stale_after_seconds: float


class Problem(Answer):
    """Something that is wrong, and what to do."""

    reason: str
    what: str
    action: str = ""

    @classmethod
    def of(cls, error: MirrorError) -> Problem:
        """An error as the page tells it."""
        place = f"{error.where}: " if str(error.where) else ""
        return cls(reason=error.reason, what=f"{place}{error.what}", action=error.action)


class May(Answer):
    """What the person who looks may do with a flow."""

    pause: bool
    run: bool
    verify: bool
    decide: bool
