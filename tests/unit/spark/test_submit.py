"""What every `spark-submit` of the job says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.demo.spark_connect import CONNECT_SETTINGS
from mirror_lib.spark.settings import SPARK_SETTINGS
from mirror_lib.spark.submit import (
    LOCAL_SETTINGS,
    checkout_path,
    find_spark_home,
    job_file,
    runs_here,
    spark_submit,
    submit_settings,
)

_PROJECT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").is_file())


def test_the_job_is_the_file_of_the_package_beside_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert job_file() == _PROJECT / "spark_jobs" / "replicate.py"

    for module in ("spark_jobs.no_such_job", "no_such_package.replicate"):
        monkeypatch.setattr("mirror_lib.spark.submit._JOB", module)
        with pytest.raises(ConfigurationError, match="no job to submit"):
            job_file()


def test_the_settings_of_the_job_are_given_when_it_is_submitted() -> None:
    """The daemon's module among them: the job cannot set it for a session that exists already."""
    for master in ("local[*]", "local[2]", "spark://host:7077", "yarn"):
        settings = submit_settings(master)

        assert SPARK_SETTINGS.items() <= settings.items(), master
        assert settings["spark.python.daemon.module"] == "spark_jobs.daemon"
        assert settings["spark.pyspark.driver.python"] == sys.executable


def test_an_administrators_options_for_the_drivers_jvm_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_options() -> set[bool]:
        return {
            "spark.driver.defaultJavaOptions" in submit_settings(master, transforms=transforms)
            for master in ("yarn", "local[*]")
            for transforms in (False, True)
        }

    assert has_options() == {True}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"):
        (tmp_path / "spark-defaults.conf").write_text(f"{name} -XX:+UseG1GC\n")
        assert has_options() == {False}, name


def test_a_jvm_that_works_on_every_record_is_that_of_the_server_that_waits_for_runs() -> None:
    """On this machine; executors of a cluster have their own JVMs, and its driver's sees no record."""
    option = "spark.driver.defaultJavaOptions"
    short, long = submit_settings("local[*]"), submit_settings("local[*]", transforms=True)

    assert "TieredStopAtLevel=1" in short[option]
    assert long == {**short, option: CONNECT_SETTINGS[option]}
    assert submit_settings("yarn", transforms=True) == submit_settings("yarn")


def test_the_page_of_a_session_on_this_machine_is_left_to_whoever_has_settings_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert submit_settings("local[*]")["spark.ui.enabled"] == "false"

    (tmp_path / "spark-defaults.conf").write_text("spark.ui.port 4711\n")

    assert "spark.ui.enabled" not in submit_settings("local[*]")


def test_only_executors_on_this_machine_use_this_python() -> None:
    assert submit_settings("local[*]")["spark.pyspark.python"] == sys.executable
    assert "spark.pyspark.python" not in submit_settings("spark://host:7077")
    assert submit_settings("local[2]")["spark.ui.enabled"] == "false"
    assert "spark.ui.enabled" not in submit_settings("spark://host:7077")
    assert runs_here("local[4]")
    assert not runs_here("k8s://https://host")


def test_a_checkout_comes_first_in_the_path_of_the_driver_and_an_installed_package_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("site.getsitepackages", lambda: ["/elsewhere"])
    assert checkout_path({}) == {"PYTHONPATH": str(_PROJECT)}
    assert checkout_path({"PYTHONPATH": "/mine"}) == {"PYTHONPATH": f"{_PROJECT}{os.pathsep}/mine"}

    monkeypatch.setattr("site.getsitepackages", lambda: [str(_PROJECT)])
    assert checkout_path({"PYTHONPATH": "/mine"}) == {}


def test_spark_home_is_what_the_environment_says_or_the_installed_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A wrong one is not replaced by another.
    with pytest.raises(ConfigurationError, match="SPARK_HOME is"):
        find_spark_home({"SPARK_HOME": str(tmp_path)})
    program = tmp_path / "bin" / "spark-submit"
    program.parent.mkdir(parents=True)
    program.touch()
    assert find_spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path
    assert spark_submit(tmp_path) == program

    assert spark_submit(find_spark_home({})).is_file()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="PySpark is not installed"):
        find_spark_home({})


def test_a_driver_on_this_machine_is_not_reached_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reaches its ports could take its blocks, which hold credentials."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert LOCAL_SETTINGS.items() <= submit_settings("local[*]").items()
    assert not LOCAL_SETTINGS.keys() & submit_settings("spark://host:7077").keys()
    # Spark makes no secret for this master, and would not start (`SecurityManager.initializeAuth`).
    assert "spark.authenticate" not in submit_settings("local-cluster[1,1,512]")
    assert submit_settings("local")["spark.authenticate"] == "true"

    (tmp_path / "spark-defaults.conf").write_text("spark.driver.host 192.0.2.1\nspark.driver.bindAddress 0.0.0.0\n")

    chosen = submit_settings("local[*]")
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & chosen.keys()
    assert chosen["spark.authenticate"] == "true"
