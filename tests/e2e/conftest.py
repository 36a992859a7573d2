"""What several end-to-end tests need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirror_lib.spark.settings import SPARK_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session on this machine, whose workers can import functions of tests."""
    from pyspark.sql import SparkSession

    settings = {**SPARK_SETTINGS, "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(_PROJECT))
        session = SparkSession.builder.master("local[2]").appName("transforms").config(map=settings).getOrCreate()
        yield session
        session.stop()
