"""Texts behind a value that look like a comment: properties files have none there."""

from __future__ import annotations

import re

_TRAILING_COMMENT = re.compile(r"\s#(\s|$)")
COMMENT_TODO = "put the comment on its own line: properties files have no comments after a value"


def without_comment(value: str) -> str:
    """Return what is before a text that looks like a trailing comment."""
    found = _TRAILING_COMMENT.search(value)
    return value if found is None else value[: found.start()]
