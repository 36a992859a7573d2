"""Files that strangers hand in: each is read, or refused with an error that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mirror_lib.errors import ConfigurationError


@contextmanager
def read_or_refused() -> Iterator[None]:
    """Pass a refusal over that names an action; every other error, and one without an action, fails the test."""
    refusal = None
    try:
        yield
    except ConfigurationError as error:
        refusal = error
    assert refusal is None or refusal.action
