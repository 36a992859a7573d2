"""A shorter sequence that fails in the same way: chunks are removed, the largest first, within a time budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tools.model.steps import Step


def shrink(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool], seconds: float) -> list[Step]:
    """Return the shortest failing sequence found; delta debugging by deletion alone (Zeller's ddmin)."""
    deadline, best = time.monotonic() + seconds, list(steps)
    size = max(1, len(best) // 2)
    while True:
        start, shorter = 0, False
        while start < len(best) and time.monotonic() < deadline:
            tried = best[:start] + best[start + size :]
            if tried and fails(tried):
                best, shorter = tried, True
            else:
                start += size
        if time.monotonic() >= deadline or (size == 1 and not shorter):
            return best
        size = max(1, size // 2)
