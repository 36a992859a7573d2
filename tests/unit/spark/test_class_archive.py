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


def test_the_drivers_jvm_reads_the_archive_besides_its_other_options(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for master in ("local[*]", "spark://host:7077", "yarn"):
        long = TRANSFORMING_JVM if master.startswith("local") else SPARK_SETTINGS[OPTION]
        for transforms, others in ((False, SPARK_SETTINGS[OPTION]), (True, long)):
            options = submit_settings(master, transforms=transforms)[OPTION]
            assert options.startswith(f"{others} -XX:SharedArchiveFile={archive} "), (master, transforms)

    # An administrator's options win.
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:+UseG1GC\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert OPTION not in submit_settings("local[*]")

    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.delenv(CLASS_ARCHIVE_VARIABLE)
    assert submit_settings("local[*]")[OPTION] == SPARK_SETTINGS[OPTION]


def test_an_archive_that_cannot_be_used_is_named_with_the_reason_and_the_driver_starts_without(
    archive: Path, caplog: pytest.LogCaptureFixture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def refused(path: str) -> str:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert class_archive_options({CLASS_ARCHIVE_VARIABLE: path}) == "", path
        return caplog.text

    for path, why in {
        "/no/such/archive.jsa": "mirror spark class-archive",
        "relative.jsa": "must be absolute",
        "/with space/x.jsa": "without spaces",
        "/": "not a file",
    }.items():
        told = refused(path)
        assert why in told
        assert path in told
    # What others may write is code of others.
    for mode in (0o664, 0o646):
        archive.chmod(mode)
        assert "other users may write it" in refused(str(archive)), oct(mode)
    archive.chmod(0o644)
    # Also what they may replace, and what a link leads to.
    for mode in (0o775, 0o757):
        archive.parent.chmod(mode)
        assert f"its folder {archive.parent}" in refused(str(archive)), oct(mode)
    shared = tmp_path_factory.mktemp("links")
    (shared / "link.jsa").symlink_to(archive)
    assert f"its folder {archive.parent}" in refused(str(shared / "link.jsa"))
    archive.parent.chmod(0o1777)
    assert f"SharedArchiveFile={archive} " in class_archive_options({CLASS_ARCHIVE_VARIABLE: str(shared / "link.jsa")})
