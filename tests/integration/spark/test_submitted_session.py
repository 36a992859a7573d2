"""A job in a program that has a Spark session already, whose settings stay as they are."""

from __future__ import annotations

import subprocess
import sys

import pytest

_JOB = """\
import sys
from pyspark.sql import SparkSession
from mirror_lib.errors import ConfigurationError
from spark_jobs.session import submitted_session

settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.speculation": "true"}
SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
submitted_session("mirror A->B", copies=False)
try:
    submitted_session("mirror A->B", copies=True)
except ConfigurationError as error:
    sys.exit(str(error))
"""


@pytest.mark.timeout(300)
def test_given_a_session_that_speculates_then_a_job_that_writes_is_refused() -> None:
    """A speculative task takes over from the one that it is a copy of; Spark counts whichever ends first."""
    done = subprocess.run([sys.executable, "-c", _JOB], capture_output=True, text=True, timeout=280)

    assert done.returncode == 1
    assert "the existing Spark session has spark.speculation=true" in done.stderr
    assert "--conf spark.speculation=false" in done.stderr
