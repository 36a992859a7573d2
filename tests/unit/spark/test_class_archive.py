"""Which archive of Spark's classes a driver reads."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mirror_lib.spark.class_archive import CLASS_ARCHIVE_VARIABLE, class_archive_options
from mirror_lib.spark.settings import SPARK_SETTINGS, TRANSFORMING_JVM
from mirror_lib.spark.submit import submit_settings

OPTION = "spark.driver.defaultJavaOptions"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive that the environment names."""
    path = tmp_path / "spark.jsa"
    path.write_bytes(b"classes")
    path.chmod(0o644)
    monkeypatch.setenv(CLASS_ARCHIVE_VARIABLE, str(path))
    return path


@pytest.mark.parametrize("master", ["local[*]", "spark://host:7077", "yarn"])
@pytest.mark.parametrize(("transforms", "jvm"), [(False, SPARK_SETTINGS[OPTION]), (True, None)])
def test_the_drivers_jvm_reads_the_archive_besides_its_other_options(
    archive: Path, master: str, transforms: bool, jvm: str | None
) -> None:
    options = submit_settings(master, transforms=transforms)[OPTION]

    others = jvm or (TRANSFORMING_JVM if master.startswith("local") else SPARK_SETTINGS[OPTION])
    assert options.startswith(f"{others} -XX:SharedArchiveFile={archive} ")


def test_without_the_variable_there_is_no_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CLASS_ARCHIVE_VARIABLE, raising=False)

    assert submit_settings("local[*]")[OPTION] == SPARK_SETTINGS[OPTION]


def test_an_administrators_options_win(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:+UseG1GC\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert OPTION not in submit_settings("local[*]")


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_an_archive_that_others_may_write_is_code_of_others_and_is_ignored(
    archive: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    archive.chmod(mode)

    with caplog.at_level(logging.WARNING):
        assert class_archive_options({CLASS_ARCHIVE_VARIABLE: str(archive)}) == ""

    assert "other users may write it" in caplog.text


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/no/such/archive.jsa", "mirror spark class-archive"),
        ("relative.jsa", "must be absolute"),
        ("/with space/x.jsa", "without spaces"),
        ("/", "not a file"),
    ],
)
def test_one_that_cannot_be_used_is_named_with_the_reason_and_the_driver_starts_without(
    path: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert class_archive_options({CLASS_ARCHIVE_VARIABLE: path}) == ""

    assert why in caplog.text
    assert path in caplog.text
