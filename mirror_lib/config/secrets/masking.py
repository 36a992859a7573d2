"""Display of values without secrets."""

from __future__ import annotations

import re

from mirror_lib.config.model import Provenance
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.masked_urls import HIDDEN, masked_urls

_QUOTED_JAAS = re.compile(r"LoginModule\s+(?:required|requisite|sufficient|optional)\b", re.IGNORECASE)


def printable_value(name: str, setting: Provenance) -> str:
    """Return the printable value of a setting: variables stay as written, since providers hold secrets."""
    names = (name, setting.key or "")
    if any(is_secret(text) for text in names):
        return HIDDEN
    return masked_text(setting.value if setting.written is None else setting.written)


def masked_text(text: str) -> str:
    """Return a text without the passwords of URLs and of JAAS configurations in it."""
    if _QUOTED_JAAS.search(text):
        return HIDDEN
    return masked_urls(text)
