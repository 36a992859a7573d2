"""MirrorMaker 2 itself as a process of tests; that it copies is shown by `integration/interop`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.dev.processes import ProcessError
from testbed.mm2 import MirrorMaker


def test_given_a_file_that_mirror_maker_refuses_when_started_then_the_error_shows_its_log(tmp_path: Path) -> None:
    mirror_maker = MirrorMaker(tmp_path / "mm2")

    with pytest.raises(ProcessError, match=r"(?s)ended while starting.*ConfigException"), mirror_maker:
        mirror_maker.start("clusters = A, B\n").wait_started()
