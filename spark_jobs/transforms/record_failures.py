"""Which record, or which task, an error of Spark is about, for jobs that transform records."""

from __future__ import annotations

import re

from mirror_lib.features.transforms.record_mark import read_mark
from spark_jobs.failures import in_short, lost_its_jvm

_FAILED_TASK = re.compile(r"Task (\d+) in stage \S+ failed")
_TRACEBACK = "Traceback (most recent call last):"
#: Records choose texts of errors: each expression here takes linear time.
_SQL_STATE = re.compile(r"(?<![. ])[. ]*+SQLSTATE: \w+\.?$")
_NO_RECORD = re.compile(
    r"ExecutorLostFailure|OutOfMemory|has been cancelled|Connection refused|MemoryError|ImportError|ModuleNotFoundError"
    r"|PYTHON_VERSION_MISMATCH|\bmirror_lib\.[\w.]{1,200}: "
)


def words_of(error: Exception) -> str:
    """The message of a Spark error, without its location in Spark."""
    marked = read_mark(str(error))
    if marked is not None:
        message = marked.what
    else:
        # The exception itself is the first line after the frames of a Python worker's last traceback.
        _, found, trace = str(error).rpartition(_TRACEBACK)
        behind = (line for line in trace.splitlines() if line and not line[0].isspace()) if found else iter(())
        message = next(behind, None) or in_short(error)
    return _SQL_STATE.sub("", message).rstrip(". ")


def blames_no_record(error: Exception) -> bool:
    """True if a job failed for another reason than a record: its workers, its memory, its connections.

    The project's own errors about a record have its mark.
    """
    message = str(error)
    return read_mark(message) is None and (lost_its_jvm(error) or _NO_RECORD.search(message) is not None)


def failed_task(error: Exception, tasks: int) -> int | None:
    """The number of the task whose failure ended a Spark job, None if unknown.

    Args:
        tasks: number of tasks of the job's only stage.
    """
    found = _FAILED_TASK.search(str(error))
    return int(found[1]) if found is not None and int(found[1]) < tasks else None
