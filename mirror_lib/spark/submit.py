"""Submit the Spark job: the common part of all command lines of `spark-submit`."""

from __future__ import annotations

import importlib.util
import os
import site
import sys
from collections.abc import Mapping
from pathlib import Path

import javaproperties

import mirror_lib
from mirror_lib.errors import ConfigurationError
from mirror_lib.spark.class_archive import class_archive_options
from mirror_lib.spark.settings import SPARK_SETTINGS, TRANSFORMING_JVM


def find_spark_home(environment: Mapping[str, str]) -> Path:
    """`SPARK_HOME`, else the folder of the installed PySpark, found without importing it.

    Raises:
        ConfigurationError: there is no `spark-submit`.
    """
    named = environment.get("SPARK_HOME")
    spec = None if named else importlib.util.find_spec("pyspark")
    places = [named] if named else list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        if spark_submit(Path(place)).is_file():
            return Path(place)
    if named:
        raise ConfigurationError(
            f"SPARK_HOME is {named}, where bin/spark-submit is missing.", action="Correct it, or unset SPARK_HOME."
        )
    raise ConfigurationError("PySpark is not installed.", action="Install batch-mirror[spark].")


def spark_submit(spark_home: Path) -> Path:
    """Path of the program."""
    return spark_home / "bin" / "spark-submit"


def spark_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in `spark-defaults.conf`, valid for every `spark-submit` of this machine; empty if there is none.

    Args:
        environment: the process environment of `spark-submit`.
    """
    folder = environment.get("SPARK_CONF_DIR")
    if not folder:
        try:
            folder = str(find_spark_home(environment) / "conf")
        except ConfigurationError:
            return {}
    try:
        # As in Java (`Utils.getPropertiesFromFile`): invalid bytes, most likely in a comment, are replaced.
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
        return {key: value.strip() for key, value in javaproperties.loads(text).items()}
    except (OSError, ValueError):
        # `spark-submit` itself reports an unreadable file.
        return {}


#: A driver with a master on this machine. It offers the job's blocks, which contain credentials, at its ports: so it
#: listens for this machine alone, and asks for a secret that Spark makes.
LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.authenticate": "true",
}
#: A master for tests of Spark itself, with executors in processes of their own. Spark makes no secret for it, and does
#: not start without one (`SecurityManager.initializeAuth`).
_LOCAL_CLUSTER = "local-cluster["
#: Default master of Spark: this machine with all its cores.
LOCAL_MASTER = "local[*]"
_JOB = "spark_jobs.replicate"
_JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")


def job_file() -> Path:
    """The Spark job's file, found through the installed package without running it.

    Raises:
        ConfigurationError: `spark_jobs` is not installed here.
    """
    try:
        spec = importlib.util.find_spec(_JOB)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the package spark_jobs is not importable, so there is no job to submit.",
            action="Install this project (pip install batch-mirror) where the job is started.",
        )
    return Path(spec.origin)


def job_module(job: Path) -> str:
    """The module of a job's file, for `python -m`: a driver without `spark-submit`."""
    return f"{_JOB.partition('.')[0]}.{job.stem}"


def runs_here(master: str) -> bool:
    """True if executors use this machine and therefore this Python."""
    return master.startswith("local")


def submit_settings(master: str, *, transforms: bool = False) -> dict[str, str]:
    """The settings for `--conf`.

    All of them are needed at submission: with an existing session, the job's own session builder would be too late for
    the daemon's module. Executors of a cluster have their own Python, from `PYSPARK_PYTHON` or the cluster's defaults;
    executors on this machine use this Python. Their JVMs have Spark's default options.

    Args:
        master: Spark's master URL.
        transforms: whether records go through transforms, and so through the JVM of every executor: on this machine
            that is the driver's.
    """
    settings = {**SPARK_SETTINGS, "spark.pyspark.driver.python": sys.executable}
    if transforms and runs_here(master):
        settings[_JAVA_OPTIONS[0]] = TRANSFORMING_JVM
    chosen = spark_defaults(os.environ)
    if any(name in chosen for name in _JAVA_OPTIONS):
        # The administrator's choice wins: these options would replace it, or select another garbage collector.
        del settings[_JAVA_OPTIONS[0]]
    elif archive := class_archive_options(os.environ):
        settings[_JAVA_OPTIONS[0]] += f" {archive}"
    if runs_here(master):
        settings["spark.pyspark.python"] = sys.executable
        omitted = {*chosen, "spark.authenticate"} if master.startswith(_LOCAL_CLUSTER) else chosen
        settings |= {name: value for name, value in LOCAL_SETTINGS.items() if name not in omitted}
        if not any(name.startswith("spark.ui.") for name in chosen):
            # The UI of a session that lives for seconds is of no use, and its server takes a second to start.
            settings["spark.ui.enabled"] = "false"
    return settings


def checkout_path(environment: Mapping[str, str]) -> dict[str, str]:
    """`PYTHONPATH` for the driver process to find a package that is a checkout; empty if it is installed.

    Args:
        environment: the process environment to which the result is to be added.
    """
    root = str(Path(mirror_lib.__file__).parents[1])
    if root in site.getsitepackages():
        return {}
    return {"PYTHONPATH": os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))}
