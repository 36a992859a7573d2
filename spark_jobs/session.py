"""The Spark session of a job: that of `spark-submit`, a local one, or one of a Spark Connect server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mirror_lib.errors import ConfigurationError, MirrorError, SparkUnreachableError
from mirror_lib.spark.connect_server import ConnectAddress, shared_session_id
from mirror_lib.spark.settings import SPARK_SETTINGS
from spark_jobs.failures import in_short

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

_log = logging.getLogger(__name__)
_PACKAGE = "batch-mirror"
_SPECULATION = "spark.speculation"
_MAX_FAILURES = "spark.task.maxFailures"
_DAEMON = "spark.python.daemon.module"
#: Maximum number of sessions in a week that the server may have ended as idle: by its defaults, at most one per hour.
_GENERATIONS = 200
#: About 20 s in total. Spark's default is ten minutes, within which another run could have used another server.
_RETRIES, _LONGEST_PAUSE_MS = 8, 4_000


def submitted_session(name: str, *, copies: bool) -> SparkSession:
    """The session of `spark-submit`, or a local one; if the calling program already has a session, that one.

    Args:
        copies: whether the tasks write, so that Spark must not start a task twice.

    Raises:
        ConfigurationError: the existing session is unsuitable: its static settings cannot be changed.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName(name).config(map=dict(SPARK_SETTINGS)).getOrCreate()
    if copies:
        # The session's own settings show the requested values, and not the effective ones.
        _refuse_speculation(session.sparkContext.getConf().get(_SPECULATION), "the existing Spark session")
    return session


def connect_session(address: ConnectAddress, *, copies: bool) -> SparkSession:
    """A session of a suitable Spark Connect server; all runs share one unless the address names another.

    It stays open, since its Python workers are warm; the server ends it after a long idle time.

    Args:
        copies: whether the tasks write, so that Spark must not start a task twice.

    Raises:
        ConfigurationError: the server has another version, has unsuitable settings, or refuses access.
        SparkUnreachableError: the server does not respond.
    """
    from pyspark.errors import PySparkException

    address.require_listener()
    try:
        session = _open(address)
        _check(session, address, copies=copies)
    except PySparkException as error:
        raise _rejection(address, error) from error
    return session


def _open(address: ConnectAddress) -> ConnectSession:
    from pyspark.errors import PySparkException

    if address.names_session:
        return _session(address)
    version = f"{_our_version()} {_spark_version()}"
    for generation in range(_GENERATIONS):
        session = _session(address.in_session(shared_session_id(version, generation)))
        try:
            # The first call: the server creates the session.
            _ = session.version
        except PySparkException as error:
            session.client.close()
            if "SESSION_CLOSED" not in str(error):
                raise
        else:
            return session
    return _session(address)


def _session(address: ConnectAddress) -> ConnectSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession(connection=address.url)
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)])
    return session


def _check(session: ConnectSession, address: ConnectAddress, *, copies: bool) -> None:
    """Check the settings that only a server can have: a client cannot set them (`SparkConf`, static settings)."""
    theirs, ours = session.version, _spark_version()
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise ConfigurationError(
            f"the Spark Connect server {address} runs Spark {theirs}, but this job has PySpark {ours}.",
            action="Use the same version on both.",
        )
    if not copies:
        return
    _refuse_speculation(session.conf.get(_SPECULATION, "false"), f"the Spark Connect server {address}")
    here = str(session.conf.get("spark.master", "")).startswith("local")
    if not here and session.conf.get(_MAX_FAILURES, "4") != "1":
        _log.warning(
            "Spark Connect server %s: %s is not 1. A failed task is retried at once and takes over safely, but a "
            "permanent error is met several times.",
            address,
            _MAX_FAILURES,
        )
    if session.conf.get(_DAEMON, "") != SPARK_SETTINGS[_DAEMON]:
        _log.info(
            "Spark Connect server %s: without %s=%s, workers start cold.", address, _DAEMON, SPARK_SETTINGS[_DAEMON]
        )


def _refuse_speculation(setting: object, whose: str) -> None:
    if str(setting).strip().lower() == "true":
        raise ConfigurationError(
            f"{whose} has {_SPECULATION}=true: it would start copies of tasks that write, and each would stop the "
            "original task.",
            action=f"Start it with --conf {_SPECULATION}=false; see docs/spark.md and docs/spark-connect.md.",
        )


def _rejection(address: ConnectAddress, error: PySparkException) -> MirrorError:
    reason = in_short(error)
    if "UNAUTHENTICATED" in str(error) or "PERMISSION_DENIED" in str(error):
        return ConfigurationError(
            f"the Spark Connect server {address} rejected the login: {reason}.",
            action="Check the token of its Airflow connection (the password), or `token` of its address.",
        )
    return SparkUnreachableError(
        f"the Spark Connect server {address} did not open a session: {reason}.",
        action="See its log; test it with `python -m spark_jobs.warm` and its address.",
    )


def _spark_version() -> str:
    from pyspark.version import __version__

    return str(__version__)


def _our_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return "0"
