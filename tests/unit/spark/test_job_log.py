import logging

import pytest

from spark_jobs.job_log import configure_log


@pytest.fixture
def loggers():
    """Levels as they were, afterwards."""
    found = [logging.getLogger(name) for name in ("mirror_lib", "spark_jobs")]
    before = [logger.level for logger in found]
    yield found
    for logger, level in zip(found, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize(("told", "level"), [("DEBUG", logging.DEBUG), ("error", logging.ERROR)])
def test_the_environment_says_how_much_a_job_logs_of_its_own(loggers, monkeypatch, told, level):
    monkeypatch.setenv("MIRROR_LOG_LEVEL", told)

    configure_log()

    assert [logger.level for logger in loggers] == [level, level]
    assert logging.getLogger("py4j").level == logging.NOTSET


@pytest.mark.parametrize("told", [None, "", "LOUD"])
def test_without_a_level_that_means_something_it_is_the_usual_one(loggers, monkeypatch, told):
    monkeypatch.delenv("MIRROR_LOG_LEVEL", raising=False)
    if told is not None:
        monkeypatch.setenv("MIRROR_LOG_LEVEL", told)
    before = [logger.level for logger in loggers]

    configure_log()

    assert [logger.level for logger in loggers] == before
