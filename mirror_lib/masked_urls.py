"""Masks secrets in URLs; the only function for this."""

from __future__ import annotations

import re

HIDDEN = "[hidden]"

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*://)(?P<rest>[^\s\"'<>`]+)")
_PARAMETER = re.compile(
    r"(?P<before>[?&;#][^=&;#]*(?:pass|pwd|secret|token|key|sig|auth|cred|code|session|jwt|sas)[^=&;#]*=)[^&;#]+",
    re.IGNORECASE,
)


def masked_urls(text: str) -> str:
    """Return a text without user information, secret parameters and secret fragments of its URLs.

    A password may contain characters that end the host (`http://me:a/b?c@host`): user information ends at the last `@`.
    """
    return _URL.sub(_mask, text)


def _mask(url: re.Match[str]) -> str:
    user, at, rest = url["rest"].rpartition("@")
    if at:
        name, colon, _ = user.partition(":")
        user = f"{name}:{HIDDEN}" if colon and _is_name(name) else HIDDEN
    return url["scheme"] + user + at + _PARAMETER.sub(rf"\g<before>{HIDDEN}", rest)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[\w.\-+%]+", text) is not None
