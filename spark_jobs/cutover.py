"""The Spark job of a cutover: `spark-submit cutover.py --config mirror.properties --name scope-1 --by ann`.

One session for all steps that copy or compare: while writers are stopped, no step waits for Spark to start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from mirror_lib.features.cutover.context import Engine
from mirror_lib.features.cutover.job import main
from spark_jobs.entry import OpenSession, start
from spark_jobs.replicate import copy_with
from spark_jobs.verify import verify_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _run(argv: Sequence[str], open_session: OpenSession) -> int:
    return main(argv, partial(engine, open_session))


def engine(open_session: OpenSession, name: str) -> Engine:
    """An engine that copies and compares in one session, which starts on its first use."""

    @cache
    def session() -> SparkSession:
        return open_session(name)

    return Engine(copy=lambda: copy_with(session()), compare=lambda _plan: verify_with(session()))


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:], _run, copies=True))
