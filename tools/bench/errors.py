"""Errors that stop a comparison."""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class BenchError(MirrorError):
    """The comparison cannot be made or would not be fair; a wrong number is worse than none."""

    reason = "bench"
