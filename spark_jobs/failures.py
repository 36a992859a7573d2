"""Translate Spark's own errors for the operator of a job."""

from __future__ import annotations

import re

from mirror_lib import __version__
from mirror_lib.errors import ConfigurationError, MirrorError, SparkJobError, Where
from spark_jobs.sealing import other_version

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
#: The message of `sealing.other_version`, and the error of an older worker, whose tasks take unsealed jobs.
_OTHER_VERSION = re.compile(r"workers have batch-mirror (\S+), and the job's driver has (\S+)\.")
_OTHER_TASK = re.compile(r"TypeError: (?:copy|verify)_bins\(\) takes ")
#: The start of messages of Spark's own errors; the excluded prefixes are about the job and not about its cause.
_ERROR_CLASS = re.compile(r"\[(?!JOB_|PYTHON_|UNKNOWN)[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)*\] [^\n]*")
#: Errors of py4j if the JVM ends during a call; a response of the JVM itself is a Py4JJavaError or has a trace.
_NO_ANSWER = frozenset({"Py4JNetworkError", "Py4JError"})
_OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"


def spark_errors() -> tuple[type[Exception], ...]:
    """The exceptions of a call to Spark: its own errors, and those of the connection to an ended JVM.

    py4j passes on the operating system's error if it cannot connect again.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError, EOFError


def lost_its_jvm(error: Exception) -> bool:
    """True if the connection to the JVM ended, so that no later call can succeed."""
    return isinstance(error, (OSError, EOFError)) or (type(error).__name__ in _NO_ANSWER and "Trace:" not in str(error))


def spark_failure(error: Exception, doing: str, flow: str | None) -> MirrorError:
    """The typed error for an exception of Spark while it ran the project's tasks.

    Args:
        doing: the work that was ended, such as `the copy`.
    """
    where, text = Where(flow=flow), str(error)
    if lost_its_jvm(error):
        return SparkJobError(
            f"Spark's JVM ended during {doing} ({in_short(error)}).",
            where=where,
            action="An operator killed it, or the kernel for lack of memory. Airflow kills it when a run or a task is "
            "marked, cleared or deleted; the DAG's audit log shows by whom. Copied records are kept; the next "
            "run continues there.",
        )
    missing = _MISSING.search(text)
    if missing is not None:
        return ConfigurationError(
            f"Spark's Python workers cannot import {missing.group(1)}.",
            where=where,
            action="Install this project's package, in the same version and with all dependencies, into the Python of "
            "Spark's executors (of a Spark Connect server: PYSPARK_PYTHON when it starts), and start Spark "
            "again.",
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
            action="Use the same minor version: PYSPARK_PYTHON sets the workers' Python, PYSPARK_DRIVER_PYTHON the "
            "driver's.",
        )
    return SparkJobError(
        f"Spark stopped {doing}: {in_short(error)}.",
        where=where,
        action="Copied records are kept; the next run continues there. See the executors' logs: check for "
        "out-of-memory errors.",
    )


def in_short(error: Exception) -> str:
    """The line of a Java stack trace with the cause: if an error has one of Spark's error classes, that line."""
    known = _ERROR_CLASS.search(str(error))
    if known is not None:
        return known[0].rstrip(". ")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "Job aborted" in line or "Exception: " in line]
    return (causes or lines or [type(error).__name__])[0].rstrip(".")
