"""How a job learns where its session is and how much to log, and what Spark's errors become."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from mirror_lib.errors import ConfigurationError, SparkJobError
from mirror_lib.features.transforms.model import TransformChain
from mirror_lib.features.transforms.rows.layout import READ_SCHEMA, place_of
from mirror_lib.records.header import Codec
from spark_jobs.entry import take_remote
from spark_jobs.failures import spark_errors, spark_failure
from spark_jobs.job_log import configure_log
from spark_jobs.preview import preview_with
from spark_jobs.transforms.record_failures import blames_no_record


def test_the_argument_goes_before_the_variable() -> None:
    for words, variable, remote in (
        (["--remote=sc://a"], "", "sc://a"),
        (["--remote", "sc://a"], "sc://b", "sc://a"),
        ([], "sc://b", "sc://b"),
        # Spark's own: a server that its client starts.
        ([], "local", None),
        ([], "", None),
    ):
        given = ["--config=/f", *words, "--flow=A->B", "--report=/r"]
        kept = ["--config=/f", "--flow=A->B", "--report=/r"]
        assert take_remote(given, {"SPARK_REMOTE": variable}) == (remote, kept), (words, variable)


def test_what_spark_raises_says_what_to_do() -> None:
    for text, kind, said in (
        ("PythonException: ModuleNotFoundError: No module named 'mirror_lib'", ConfigurationError, "mirror_lib"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", ConfigurationError, "another version"),
        ("at x\nJob aborted due to stage failure.\nat y", SparkJobError, "Job aborted"),
        # A record's text, which must not be searched from each of its parts.
        ("[CAST_INVALID_INPUT] '" + "mirror_lib." * 300_000 + " " * 3_000_000 + "'", SparkJobError, "CAST_INVALID"),
    ):
        error = spark_failure(RuntimeError(text), "the copy", "A->B")

        assert type(error) is kind, text[:80]
        assert not blames_no_record(RuntimeError(text)) or kind is ConfigurationError
        assert said in error.what
        assert error.action


def test_a_jvm_that_is_gone_is_not_taken_for_a_broker() -> None:
    # As in a run that somebody marks in Airflow, which kills the JVM and leaves Python alone.
    for error in (
        ConnectionRefusedError(111, "Connection refused"),
        EOFError(),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o111.getResult"),
    ):
        assert isinstance(error, spark_errors())
        assert blames_no_record(error)

        told = spark_failure(error, "the copy", "A->B")

        assert type(told) is SparkJobError, error
        assert told.what.startswith("Spark's JVM ended during the copy")
        assert "marked, cleared or deleted" in told.action


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), EOFError()])
def test_a_preview_whose_jvm_is_gone_blames_no_record(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Nor does it try its records one by one: every further call would fail as well."""
    calls: list[int] = []

    def of_arrow(_: object, rows: pa.Table) -> None:
        calls.append(rows.num_rows)
        raise error

    monkeypatch.setattr("spark_jobs.preview.from_arrow_table", of_arrow)
    sample = [
        {"topic": "orders", "__mirror_source": {"place": place_of(0, Codec.NONE), "offset": at}} for at in range(9)
    ]

    with pytest.raises(SparkJobError, match="JVM ended during the preview"):
        preview_with(None, "A->B", {}, executor_wait_seconds=0.0)(  # type: ignore[arg-type]
            TransformChain(()), pa.Table.from_pylist(sample, READ_SCHEMA)
        )
    assert calls == [9]


@pytest.fixture
def loggers():
    """Levels as they were, afterwards."""
    found = [logging.getLogger(name) for name in ("mirror_lib", "spark_jobs")]
    before = [logger.level for logger in found]
    yield found
    for logger, level in zip(found, before, strict=True):
        logger.setLevel(level)


def test_the_environment_says_how_much_a_job_logs_of_its_own(loggers, monkeypatch):
    before = [logger.level for logger in loggers]
    monkeypatch.delenv("MIRROR_LOG_LEVEL", raising=False)
    configure_log()
    assert [logger.level for logger in loggers] == before

    # Without a level that means something it is the usual one.
    for told in ("", "LOUD"):
        monkeypatch.setenv("MIRROR_LOG_LEVEL", told)
        configure_log()
        assert [logger.level for logger in loggers] == before, told

    for told, level in (("DEBUG", logging.DEBUG), ("error", logging.ERROR)):
        monkeypatch.setenv("MIRROR_LOG_LEVEL", told)
        configure_log()
        assert [logger.level for logger in loggers] == [level, level], told
        assert logging.getLogger("py4j").level == logging.NOTSET
