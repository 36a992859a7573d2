"""`mirror spark class-archive`, and a driver that reads what it has written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.spark.class_archive import CLASS_ARCHIVE_VARIABLE
from mirror_lib.spark.submit import find_spark_home, job_file, spark_submit, submit_settings

#: How a JVM names a class that it takes from a dynamic archive.
_FROM_ARCHIVE = "shared objects file (top)"


def test_a_driver_takes_sparks_classes_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, loaded = tmp_path / "classes" / "spark.jsa", tmp_path / "loaded.log"

    done = CliRunner().invoke(app, ["spark", "class-archive", "--output", str(archive)], catch_exceptions=False)

    assert done.exit_code == 0, done.output
    assert CLASS_ARCHIVE_VARIABLE in done.output
    assert [path.name for path in archive.parent.iterdir()] == ["spark.jsa"]
    monkeypatch.setenv(CLASS_ARCHIVE_VARIABLE, str(archive))
    # Options of tests name another archive.
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    settings = submit_settings("local[1]")
    subprocess.run(
        [
            *(spark_submit(find_spark_home(os.environ)), "--master", "local[1]"),
            *("--driver-java-options", f"-Xlog:class+load:file={loaded}"),
            *(f"--conf={key}={value}" for key, value in settings.items()),
            job_file().with_name("class_archive.py"),
        ],
        check=True,
        capture_output=True,
        timeout=240,
    )
    lines = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    from_archive, from_jars = (sum(source in line for line in lines) for source in (_FROM_ARCHIVE, ".jar"))
    assert from_archive > 1000
    # The others are lambdas, which no jar has. Some classes cannot be archived.
    assert from_jars < 0.05 * from_archive


def test_without_spark_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    done = CliRunner().invoke(app, ["spark", "class-archive", "--output", str(tmp_path / "spark.jsa")])

    assert done.exit_code == 2
    assert "bin/spark-submit is missing" in done.output
    assert not (tmp_path / "spark.jsa").exists()
