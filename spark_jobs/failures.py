"""What Spark's own errors mean to whoever runs a job."""

from __future__ import annotations

import re

from mirror_lib import __version__
from mirror_lib.errors import ConfigurationError, MirrorError, SparkJobError, Where
from spark_jobs.sealing import other_version

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
#: As `sealing.other_version` says it, and what a worker says that takes jobs as they are.
_OTHER_VERSION = re.compile(r"workers have batch-mirror (\S+), and the job's driver has (\S+)\.")
_OTHER_TASK = re.compile(r"TypeError: (?:copy|verify)_bins\(\) takes ")
_OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"


def spark_failure(error: Exception, doing: str, flow: str | None) -> MirrorError:
    """The typed error for what Spark raised while it ran our tasks.

    Args:
        doing: what was ended, such as `the copy`.
    """
    where, text = Where(flow=flow), str(error)
    missing = _MISSING.search(text)
    if missing is not None:
        return ConfigurationError(
            f"Spark's Python workers cannot import {missing.group(1)}.",
            where=where,
            action="Install this project's package, in the same version and with all it needs, into the Python of "
            "Spark's executors (of a Spark Connect server: PYSPARK_PYTHON when it starts), and start Spark again.",
        )
    other = _OTHER_VERSION.search(text)
    if other is not None:
        return other_version(workers=other[1], driver=other[2], where=where)
    if _OTHER_TASK.search(text) is not None:
        return other_version(workers="of another version", driver=__version__, where=where)
    if _OTHER_PYTHON in text:
        return ConfigurationError(
            "Spark's Python workers have another version of Python than the job's driver.",
            where=where,
            action="Give both the same minor version: PYSPARK_PYTHON names the workers', PYSPARK_DRIVER_PYTHON the "
            "driver's.",
        )
    return SparkJobError(
        f"Spark ended {doing}: {in_short(error)}.",
        where=where,
        action="What was done is kept; the next run finds it and goes on. The executors' logs say more: look for "
        "memory that ran out.",
    )


def in_short(error: Exception) -> str:
    """The line of a Java stack trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Job aborted" in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[0].rstrip(".")
