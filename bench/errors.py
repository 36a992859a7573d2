"""What can stop a comparison."""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class BenchError(MirrorError):
    """The comparison cannot be made or would not be fair; no number is better than a wrong one."""

    reason = "bench"
