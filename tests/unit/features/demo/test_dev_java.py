"""Java: which one is found, and what is said when it will not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.spark.java import find_java, parse_java_version


def test_the_feature_release_is_read_from_what_java_prints() -> None:
    for printed, release in {
        'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)': 17,
        'openjdk version "21" 2023-09-19': 21,
        'java version "1.8.0_392"': 8,
        'openjdk version "25-ea" 2025-09-16': 25,
        "bash: java: command not found": None,
    }.items():
        assert parse_java_version(printed) == release, printed


def test_given_no_java_or_an_old_one_when_looked_for_then_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigurationError, match=r"not installed.*apt-get install openjdk-17-jre-headless"):
        find_java()

    monkeypatch.undo()
    _fake_java(tmp_path, "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"is Java 8, which is too old\. Install Java 17"):
        find_java()


def _fake_java(home: Path, release: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{release}\"' >&2\n")
    program.chmod(0o755)
    return program
