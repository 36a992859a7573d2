"""Observation is not part of a run: its errors are logged and never stop the run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


@contextmanager
def log_errors(flow: str, what: str) -> Iterator[None]:
    """Run the block; log any error in it and continue after the block.

    Args:
        flow: for the log.
        what: what would have been stored, for the log.
    """
    try:
        yield
    except Exception as error:
        # Any exception: the records are copied, and only monitoring is incomplete.
        _log.warning("Flow %s: %s cannot be stored for monitoring: %s", flow, what, error)
