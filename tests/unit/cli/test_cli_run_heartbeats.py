"""`mirror run` writes heartbeats as the flow's DAG does, and goes on where it cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from mirror_lib.cli.flow_frame import FlowCommand
from mirror_lib.cli.run import command
from mirror_lib.cli.run.command import _emit_heartbeats
from mirror_lib.errors import AuthorizationError
from mirror_lib.sync.heartbeats.flow import EmittedHeartbeat
from tests.support.flow_files import AWAY, write_flow


def emit(tmp_path: Path, *lines: str) -> Mock:
    """Return the output of the command."""
    output = Mock()
    _emit_heartbeats(FlowCommand(output, write_flow(tmp_path, *AWAY, *lines), "A->B"))
    return output


def test_one_is_written_into_the_source_and_one_into_the_target_and_a_refusal_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = AuthorizationError("it may not be written.")

    def emitted(pairs: Any, ledger: Any) -> tuple[EmittedHeartbeat, ...]:
        errors = {"B->A": refused}
        return tuple(
            EmittedHeartbeat(pair.flow, pair.flow.target, "heartbeats", 1, errors.get(str(pair.flow))) for pair in pairs
        )

    monkeypatch.setattr(command, "emit_heartbeats", emitted)

    told = emit(tmp_path)

    (document,) = told.document.call_args.args
    assert [each["pair"] for each in document["heartbeats"]] == ["B->A", "A->B"]
    told.note.assert_called_once_with("Warning: heartbeat of B->A: it may not be written.")


def test_none_is_written_when_they_are_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "emit_heartbeats", SimpleNamespace())

    emit(tmp_path, "emit.heartbeats.enabled = false").document.assert_called_once_with({"heartbeats": []})
