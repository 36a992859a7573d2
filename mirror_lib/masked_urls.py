"""Masks secrets in URLs; the only function for this. Its time is linear: texts may be written by others."""

from __future__ import annotations

import re

HIDDEN = "[hidden]"

_MARK = "://"
_SCHEME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-")
_REST = re.compile(r"[^\s\"'<>`]*")
_SEPARATOR = re.compile("([&;#])")
_SECRET = re.compile("pass|pwd|secret|token|key|sig|auth|cred|code|session|jwt|sas", re.IGNORECASE)
_NAME = re.compile(r"[\w.\-+%]+")


def masked_urls(text: str) -> str:
    """Return a text without user information, secret parameters and secret fragments of its URLs.

    A password may contain characters that end the host (`http://me:a/b?c@host`): user information ends at the last `@`.
    """
    parts: list[str] = []
    done = at = 0
    while (at := text.find(_MARK, at)) >= 0:
        has_scheme = _has_scheme(text, done, at)
        at += len(_MARK)
        if not has_scheme:
            continue
        end = _REST.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
        parts += (text[done:at], _masked_rest(text[at:end]))
        done = at = end
    return "".join((*parts, text[done:]))


def _has_scheme(text: str, start: int, end: int) -> bool:
    """Return True if a letter, possibly with further characters of a scheme, ends a part of a text."""
    while end > start and text[end - 1] in _SCHEME_CHARACTERS:
        end -= 1
        if text[end].isalpha():
            return True
    return False


def _masked_rest(rest: str) -> str:
    """Mask the part of a URL that follows its scheme."""
    user, at, rest = rest.rpartition("@")
    if at:
        name, colon, _ = user.partition(":")
        user = f"{name}:{HIDDEN}" if colon and _NAME.fullmatch(name) else HIDDEN
    first, *others = _SEPARATOR.split(rest)
    path, question, parameter = first.partition("?")
    masked = [path, question, _masked_parameter(parameter) if question else ""]
    masked += (_masked_parameter(each) if place % 2 else each for place, each in enumerate(others))
    return "".join((user, at, *masked))


def _masked_parameter(parameter: str) -> str:
    """Mask the value if the name, which is everything before the equals sign, names a secret.

    In a value, a question mark begins another parameter: a URL may be the value of a parameter.
    """
    name, *values = parameter.split("=")
    shown = [name]
    is_parameter = True
    for value in values:
        if is_parameter and _SECRET.search(name):
            has_value = any(values[len(shown) - 1 :]) or len(values) > len(shown)
            return "=".join((*shown, HIDDEN if has_value else ""))
        shown.append(value)
        _, question, name = value.partition("?")
        is_parameter = bool(question)
    return "=".join(shown)
