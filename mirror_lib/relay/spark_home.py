"""The Spark that is installed on the submitting machine, and what its administrator has set for all jobs."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import javaproperties

from mirror_lib.errors import ConfigurationError


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
    """The program itself."""
    return spark_home / "bin" / "spark-submit"


def spark_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """What `spark-defaults.conf` says to every `spark-submit` of this machine; empty where there is none.

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
        # As Java reads it (`Utils.getPropertiesFromFile`): other bytes, of a comment most likely, are replaced.
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
        return {key: value.strip() for key, value in javaproperties.loads(text).items()}
    except (OSError, ValueError):
        # What cannot be read is told by `spark-submit` itself.
        return {}
