"""Paths to nested fields, as `field.syntax.version=V2` writes them (KIP-821)."""

from __future__ import annotations


def parse_path(text: str) -> tuple[str, ...]:
    """Return the names on the path to a field (`SingleFieldPath.buildFieldPathV2`).

    Dots separate names; a name with dots is enclosed in backticks, in which a backslash before a backtick that is
    followed by a dot makes that backtick a part of the name.

    Raises:
        ValueError: a backtick has no partner, or the path is empty.
    """
    if not text:
        raise ValueError("a path needs a name")
    steps: list[str] = []
    position = 0
    while position < len(text):
        if text[position] == "`":
            step, position = _parse_quoted(text, position)
        else:
            end = text.find(".", position)
            end = len(text) if end < 0 else end
            step, position = text[position:end], end + 1
        steps.append(step)
    if text.endswith("."):
        steps.append("")
    return tuple(steps)


def _parse_quoted(text: str, opening: int) -> tuple[str, int]:
    """Return the name that begins with a backtick, and where the next one begins."""
    name = ""
    start = position = opening + 1
    while True:
        position = text.find("`", position)
        if position < 0:
            raise _incomplete(text, opening)
        escaped = text[position - 1] == "\\"
        if position == len(text) - 1:
            if escaped:
                raise _incomplete(text, opening)
            return name + text[start:position], position + 1
        if text[position + 1] != ".":
            position += 1
        elif escaped:
            name += text[start : position - 1] + "`"
            start = position = position + 1
        else:
            return name + text[start:position], position + 2


def _incomplete(text: str, opening: int) -> ValueError:
    return ValueError(
        f"the path {text} has an unmatched backtick; write a backslash before the one at position {opening}"
    )
