"""What the runner on Spark tells when Spark gives up."""

from __future__ import annotations

from typing import Any, Self

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from mirror_lib.errors import SparkJobError
from spark_jobs.replicate import copy_with
from tests.support.brokers.fake_cluster import FakeCluster, fill, job, opened

TRACE = """An error occurred while calling o72.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
"""


class FailingSpark:
    """A session whose job does not end well."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def range(self, *_: int) -> Self:
        return self

    def mapInArrow(self, *_: Any) -> Self:  # noqa: N802
        return self

    def toArrow(self) -> None:  # noqa: N802
        raise self._error


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (Py4JError(TRACE), "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times"),
        (PySparkException("the session is closed"), "the session is closed"),
    ],
)
def test_spark_giving_up_is_an_error_of_the_flow_that_may_pass(error: Exception, what: str) -> None:
    source, target = FakeCluster(), FakeCluster()
    fill(source.add("orders"), [100])
    fill(target.add("A.orders"), [])
    run = copy_with(FailingSpark(error))  # type: ignore[arg-type]

    with pytest.raises(SparkJobError) as caught:
        run(job(opened(source, target)))

    assert what in caught.value.what
    assert "\n" not in caught.value.what
    assert caught.value.where.flow == "A->B"
    assert caught.value.retriable
    assert caught.value.exit_code == 1
