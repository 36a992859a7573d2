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
