"""Flows from small properties files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""

MakeConfig = Callable[..., MirrorConfig]


@pytest.fixture
def config_with(tmp_path: Path) -> MakeConfig:
    """A file with the flow A->B and further lines."""

    def make(*lines: str) -> MirrorConfig:
        path = tmp_path / "mirror.properties"
        path.write_text(_FILE + "".join(f"{line}\n" for line in lines))
        return load(path)

    return make
