"""Display of values without secrets."""

from __future__ import annotations

import re

from mirror_lib.config.model import Provenance
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.masked_urls import HIDDEN, masked_addresses, masked_urls

#: A JAAS configuration: its module, or options in quotes.
_JAAS = re.compile(r"LoginModule\b|\b(?:required|requisite|sufficient|optional)\s[^;=]{0,200}=\s*\"", re.IGNORECASE)
_ADDRESSES = "bootstrap.servers"


def printable_value(name: str, setting: Provenance) -> str:
    """Return the printable value of a setting: variables stay as written, since providers hold secrets."""
    names = (name, setting.key or "")
    if any(is_secret(text) for text in names):
        return HIDDEN
    return masked_text(setting.value if setting.written is None else setting.written, setting.key or name)


def masked_text(text: str, key: str = "") -> str:
    """Return a value without the passwords of URLs and of JAAS configurations in it.

    Args:
        key: of the value.
    """
    if _JAAS.search(text):
        return HIDDEN
    return masked_addresses(text) if key.endswith(_ADDRESSES) else masked_urls(text)
