"""The driver host of one state folder, and the one in a container."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_lib.features.demo.background_process import ProcessError
from mirror_lib.features.demo.driver_host import DriverHost, host_command
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError, greeting_of
from tests.support.compose import ComposeFile


def test_the_container_is_started_in_the_same_way() -> None:
    service = ComposeFile.read({}, {}).service("driver-host")

    assert service.command == ("python", *host_command()[1:])
    assert service.health_check == (*service.command, "--check")


def test_a_host_listens_when_it_has_started_and_is_another_one_after_the_next_start(tmp_path: Path) -> None:
    host = DriverHost(tmp_path)
    try:
        socket = host.start()
        first = host.process
        assert greeting_of(socket).code
        again = DriverHost(tmp_path).start()
        second = host.process

        assert again == socket
        assert first is not None
        assert second is not None
        assert not first.is_running
        assert greeting_of(socket).code
    finally:
        stopped = host.stop()
    assert stopped
    with pytest.raises(NoDriverHostError):
        greeting_of(socket)


def test_a_host_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    os.chmod(tmp_path / "private", 0o755)  # noqa: PTH101 - as somebody else may have made it

    with pytest.raises(ProcessError, match="is accessible to other users"):
        DriverHost(tmp_path).start()
