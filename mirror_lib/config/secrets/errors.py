"""Why a provider gives no value."""

from __future__ import annotations


class ProviderError(ValueError):
    """A provider is declared wrongly or cannot read what it is asked for; the text says what and why."""


class NotLookedUpError(ProviderError):
    """The value is not needed here and was not looked up: the variable stays as it is written, and nothing is wrong."""
