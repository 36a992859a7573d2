"""Flows from small properties files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from tests.support.flow_files import write_flow


@pytest.fixture
def config_with(tmp_path: Path) -> Callable[..., MirrorConfig]:
    """A file with the flow A->B and further lines."""
    return lambda *lines: load(write_flow(tmp_path, *lines))
