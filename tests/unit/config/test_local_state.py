"""Where local state lives, and the environment's say in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.local_state import local_config, project_root, state_dir


@pytest.fixture(autouse=True)
def no_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIRROR_STATE_DIR", raising=False)


def test_state_lives_in_one_folder_of_the_project_from_any_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert (project_root() / "pyproject.toml").is_file()
    assert state_dir() == project_root() / ".mirror"
    assert local_config() == project_root() / ".mirror" / "mirror.properties"


def test_the_environment_and_another_project_move_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path))

    assert state_dir() == tmp_path
    assert local_config() == tmp_path / "mirror.properties"

    assert state_dir({}, Path("/p")) == Path("/p/.mirror")
    assert state_dir({"MIRROR_STATE_DIR": "/s"}, Path("/p")) == Path("/s")
