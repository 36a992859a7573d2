"""The poller of a file in its thread, without clusters."""

from __future__ import annotations

import gc
import resource
import threading
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.loader import load
from mirror_lib.features.watch import poller as polling
from mirror_lib.features.watch.poller import FilePoller
from tests.support.flow_files import write_flow

_WATCHED = "A->B.mirror.schedule = on-new-records"


def test_given_an_unexpected_error_when_polling_has_ended_then_it_begins_anew_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Airflow starts no trigger again that waits, and nobody else would notice."""
    path = write_flow(tmp_path, _WATCHED)
    again = threading.Event()
    calls: list[Any] = []

    def connection(flow: Any) -> None:
        calls.append(flow)
        if len(calls) > 1:
            again.set()
        raise RuntimeError("unexpected")

    monkeypatch.setattr(polling, "source_connection", connection)
    monkeypatch.setattr(polling, "_FILE_SECONDS", 0.05)
    poller = FilePoller(path, lambda: load(path), lambda _: None)
    poller.start()
    try:
        assert again.wait(20.0)
    finally:
        poller.stop()
    assert f"{path}: internal error, polling begins anew" in caplog.text
    assert "RuntimeError: unexpected" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_given_no_free_descriptors_then_the_start_fails_and_does_not_block_the_triggerer(tmp_path: Path) -> None:
    """Airflow's triggerer starts it in its event loop, and starts a trigger that has failed again."""
    path = write_flow(tmp_path, _WATCHED)
    poller = FilePoller(path, lambda: load(path), lambda _: None)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # All up to this one are in use.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            poller.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    poller.stop()
    # Python complains about the event loop that asyncio has left half made.
    del poller
    gc.collect()
