"""Folders of stored formats are complete, and nobody changes them once they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stored_formats.__main__ import main
from tests.stored_formats.folder import HERE, digests, read_manifest, version_folders

PROJECT = HERE.parents[1]


def test_every_file_is_as_it_was_written_and_no_file_was_added(folder: Path) -> None:
    assert digests(folder) == read_manifest(folder)


def test_every_version_in_the_changelog_has_a_folder() -> None:
    lines = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    released = {line.split("]")[0].removeprefix("## [") for line in lines if line.startswith("## [")} - {"Unreleased"}
    assert "0.1.0" in released
    assert released == {folder.name for folder in version_folders()}


def test_a_folder_is_written_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.stored_formats.__main__._project_version", lambda: "0.1.0")

    assert main(["0.1.0"]) == 2
    assert "never changed" in capsys.readouterr().err


def test_the_formats_of_another_version_are_not_written_by_this_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["0.0.1"]) == 2
    assert not (HERE / "0.0.1").exists()
    assert "0.0.1" in capsys.readouterr().err
