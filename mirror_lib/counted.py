"""Numbers with their nouns, for sentences: "1 topic is", "2 topics are"."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with what it counts.

    Args:
        one: in the singular, with its verb if one follows.
        many: in the plural; `one` with an s by default.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
