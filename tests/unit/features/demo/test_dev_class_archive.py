"""Archives of loaded classes: made once, read only if they exist, never half a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.features.demo.class_archive import make_archive, reading_options


class Jvm:
    """Stands for a JVM: writes the file that its option names."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, options: tuple[str, ...]) -> None:
        self.runs += 1
        name, _, path = options[0].partition("=")
        assert name == "-XX:ArchiveClassesAtExit"
        Path(path).write_text("classes")


def test_given_no_archive_when_made_then_it_is_read_and_not_made_again(tmp_path: Path) -> None:
    archive, jvm = tmp_path / "broker.jsa", Jvm()
    assert reading_options(archive) == ()

    assert make_archive(archive, jvm)

    assert archive.read_text() == "classes"
    assert reading_options(archive) == (f"-XX:SharedArchiveFile={archive}",)
    assert not make_archive(archive, jvm)
    assert jvm.runs == 1


def test_given_a_jvm_that_fails_then_there_is_no_archive(tmp_path: Path) -> None:
    archive = tmp_path / "broker.jsa"

    def fail(options: tuple[str, ...]) -> None:
        Path(options[0].partition("=")[2]).write_text("half of the classes")
        raise RuntimeError("ended early")

    with pytest.raises(RuntimeError, match="ended early"):
        make_archive(archive, fail)
    assert reading_options(archive) == ()
    assert make_archive(archive, Jvm())
