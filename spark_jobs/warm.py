"""Try a Spark Connect server: `python -m spark_jobs.warm sc://localhost:15002`, or its address in `SPARK_REMOTE`.

The exit code is 0 if its workers can run the project's tasks. Afterwards Spark's classes are loaded, and Python
workers are running with the project's modules: the first run need not wait for them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mirror_lib.errors import MirrorError
from mirror_lib.spark.connect_server import REMOTE_VARIABLE, ConnectAddress
from spark_jobs.entry import leave
from spark_jobs.failures import spark_failure
from spark_jobs.session import connect_session
from spark_jobs.spark_versions import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa


def worker_ids(batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """The process ids of the workers that run this task, after they have loaded the modules of a copy."""
    import pyarrow as pa

    import mirror_lib.copy.transfer.result_rows  # noqa: F401
    import spark_jobs.copy_task  # noqa: F401

    for batch in batches:
        yield pa.record_batch([pa.array([os.getpid()] * len(batch), pa.int64())], names=["pid"])


def warm(address: ConnectAddress, tasks: int = 2) -> list[int]:
    """Run a task on some workers at the same time; return their process ids.

    Raises:
        MirrorError: as `connect_session`, or the workers cannot run the project's tasks.
    """
    from pyspark.errors import PySparkException

    session = connect_session(address, copies=True)
    try:
        found = to_arrow(session.range(0, tasks, 1, tasks).mapInArrow(worker_ids, "pid bigint"))
    except PySparkException as error:
        raise spark_failure(error, "a first task", None) from error
    return [int(pid) for pid in found.column(0).to_pylist()]


def main(argv: Sequence[str]) -> int:
    """Run the check; return the exit code: 0, or that of the error."""
    try:
        address = ConnectAddress.parse(argv[0] if argv else os.environ.get(REMOTE_VARIABLE, ""))
        workers = warm(address)
    except MirrorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{address} runs tasks in the Python workers {', '.join(map(str, sorted(set(workers))))}.\n")
    return 0


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
