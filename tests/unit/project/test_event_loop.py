"""The event loop of copies, with and without uvloop."""

from __future__ import annotations

import asyncio
import importlib
import sys

import pytest
import uvloop

from mirror_lib import event_loop


def test_copies_run_on_uvloop_and_on_asyncios_own_loop_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert event_loop.run is uvloop.run
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "uvloop", None)
        importlib.reload(event_loop)

        assert event_loop.run is asyncio.run

    importlib.reload(event_loop)
    assert event_loop.run is uvloop.run
