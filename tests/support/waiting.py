"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_SECONDS = 0.05


def wait_for(condition: Callable[[], object], seconds: float = 30.0, *, why: str = "it did not happen in time") -> None:
    """Wait until a condition holds.

    Args:
        why: what the failure says.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, why
        time.sleep(_POLL_SECONDS)
