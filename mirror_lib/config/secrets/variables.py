r"""Find variables in texts as Kafka's `ConfigTransformer`, in linear time.

Kafka's pattern is `\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}`. For a regex engine that backtracks, a text of a few kilobytes
can take minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_OPENING, _CLOSING = "${", "}"


class Variable(NamedTuple):
    """`${provider:path:key}`, or `${provider:key}` with an empty path."""

    written: str
    provider: str
    path: str
    key: str


def replace_variables(text: str, replace: Callable[[Variable], str]) -> str:
    """Return a text with every variable replaced once."""
    parts: list[str] = []
    done = 0
    while (opening := text.find(_OPENING, done)) >= 0:
        closing = text.find(_CLOSING, opening)
        if closing < 0:
            break
        provider, colon, rest = text[opening + len(_OPENING) : closing].partition(":")
        if colon:
            path, second, key = rest.partition(":")
            variable = Variable(text[opening : closing + 1], provider, path if second else "", key if second else rest)
            parts += (text[done:opening], replace(variable))
        else:
            # A further opening before the same closing brace has no colon either.
            parts.append(text[done : closing + 1])
        done = closing + 1
    return "".join((*parts, text[done:]))


def unclosed_provider(text: str) -> str | None:
    """Return the provider of a variable at the end whose closing brace is missing: for Kafka it is part of the value.

    Args:
        text: without variables.
    """
    _, opening, rest = text[text.rfind(_CLOSING) + 1 :].partition(_OPENING)
    provider, colon, _ = rest.partition(":")
    return provider if opening and colon else None
