"""Logging of a job's driver."""

from __future__ import annotations

import logging
import os

from mirror_lib.printable_logs import PrintableFormatter, make_output_printable

_LEVEL = "MIRROR_LOG_LEVEL"
_OWN = ("mirror_lib", "spark_jobs")


def configure_log() -> None:
    """Log to standard error; this project's messages from the level in the environment on, by default `INFO`.

    Libraries stay at `INFO`: at `DEBUG`, Spark's gateway alone logs more than everything else.
    """
    make_output_printable()
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    level = os.environ.get(_LEVEL, "").upper()
    if level in logging.getLevelNamesMapping():
        for name in _OWN:
            logging.getLogger(name).setLevel(level)
