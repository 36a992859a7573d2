"""A setting of the project's own is a field of a model, with all that file, documentation and check say of it.

Without pydantic: workers import this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Of the metadata of a field.
OWN = "own"


@dataclass(frozen=True, slots=True)
class OwnKey:
    """The key of a field. Type, default and choices are those of the field, unless they are given."""

    meaning: str
    #: None: `mirror.` and the field's name with dots.
    name: str | None = None
    #: A `ValueType`.
    type: str | None = None
    #: The text of the default, where it is not that of the field's; a field with the default None has none.
    text: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    #: From the text to the value; its `ValueError` completes "must be".
    read: Callable[[str], Any] | None = None
    #: True if other settings are a part of the value, which is made elsewhere.
    elsewhere: bool = False


def own(default: Any, meaning: str, **more: Any) -> Any:
    """A field of a dataclass that is a setting; arguments as of `OwnKey`."""
    return field(default=default, metadata={OWN: OwnKey(meaning, **more)})


def own_size(default: int, minimum: int, meaning: str) -> Any:
    """A number of bytes: Kafka's sizes are 32-bit integers, and no request may be larger."""
    return own(default, meaning, type="long", minimum=minimum, maximum=2**31 - 1)
