"""Observing watches a run and is no part of it: what goes wrong there is told to the log and holds nothing up."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)


@contextmanager
def observing(flow: str, what: str) -> Iterator[None]:
    """Do something for those who watch; any error is logged and ends only what stands inside.

    Args:
        flow: for the log.
        what: what would have been kept, for the log.
    """
    try:
        yield
    except Exception as error:
        # Whatever it is, the records are copied: only who looks sees less.
        _log.warning("Flow %s: %s cannot be kept for those who watch: %s", flow, what, error)
