"""What can stop a campaign of faults."""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class FaultsError(MirrorError):
    """The campaign cannot go on, so its numbers would mean nothing."""

    reason = "faults"


class StuckError(FaultsError):
    """The flow does not catch up any more, although the fault is over."""

    reason = "faults-stuck"
