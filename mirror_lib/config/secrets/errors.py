"""Errors of providers."""

from __future__ import annotations


class ProviderError(ValueError):
    """A provider is declared wrongly or cannot read the requested value; the text says what and why."""


class NotLookedUpError(ProviderError):
    """The value is not needed here and was not looked up: the variable stays as written, and this is not a problem."""
