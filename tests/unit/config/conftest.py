"""A configuration file of two clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.config_files import ConfigFile


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path / "mirror.properties")
