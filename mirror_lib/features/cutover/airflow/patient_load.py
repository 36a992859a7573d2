"""Read a configuration file during an operation that must survive an edit of the file."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mirror_lib.config.loader import load
from mirror_lib.errors import ConfigurationError

if TYPE_CHECKING:
    from mirror_lib.config.model import MirrorConfig

_log = logging.getLogger(__name__)
#: How long to wait for a broken file to be fixed.
PATIENCE_SECONDS: Final = 3600.0
_POLL_SECONDS = 2.0


def load_patiently(path: Path, patience_seconds: float = PATIENCE_SECONDS) -> MirrorConfig:
    """Return the configuration of a file as soon as it has no errors.

    Raises:
        ConfigurationError: it still has errors after that time.
    """
    deadline = time.monotonic() + patience_seconds
    logged = ""
    while True:
        try:
            return load(path)
        except ConfigurationError as error:
            if time.monotonic() >= deadline:
                raise
            if str(error) != logged:
                logged = str(error)
                _log.error(
                    "The configuration file has errors; waiting at most %g minutes until it is fixed: %s",
                    patience_seconds / 60,
                    error,
                )
        time.sleep(_POLL_SECONDS)
