"""What the hints of fields say of their values."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, get_args


def kind_of(hint: Any) -> tuple[Any, bool]:
    """Return the type of the values without None, and whether they may be None."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    (kind,) = (each for each in kinds if each is not NoneType)
    return kind, len(kinds) > 1
