"""One small Spark for all tests of frames."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark.frames import local_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with local_spark() as session:
        yield session
