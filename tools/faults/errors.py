"""Errors that stop a campaign of faults."""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class FaultsError(MirrorError):
    """The campaign cannot continue, so its numbers would be meaningless."""

    reason = "faults"


class StuckError(FaultsError):
    """The flow does not catch up any more, although the fault is over."""

    reason = "faults-stuck"
