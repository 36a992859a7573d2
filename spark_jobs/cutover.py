"""The Spark job of a cutover: `spark-submit cutover.py --config mirror.properties --name wave-1 --by ann`.

One session for all steps that copy or compare: while writers stand still, nobody waits for Spark to start.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from mirror_lib.relay.spark_settings import SPARK_SETTINGS
from mirror_lib.runbook.desk import Engine
from mirror_lib.runbook.job import main
from spark_jobs.job_log import configure_log
from spark_jobs.replicate import copy_with
from spark_jobs.verify import verify_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def engine(name: str) -> Engine:
    """Copies and compares in one session, which starts when it is used first."""

    @cache
    def session() -> SparkSession:
        from pyspark.sql import SparkSession

        return SparkSession.builder.appName(name).config(map=dict(SPARK_SETTINGS)).getOrCreate()

    return Engine(copy=lambda: copy_with(session()), compare=lambda _plan: verify_with(session()))


if __name__ == "__main__":
    configure_log()
    sys.exit(main(sys.argv[1:], engine))
