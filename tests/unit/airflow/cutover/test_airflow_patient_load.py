"""A configuration file that is broken in the middle of a cutover."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.airflow.cutover import patient_load
from mirror_lib.airflow.cutover.patient_load import load_patiently
from mirror_lib.errors import ConfigurationError
from tests.support.ledger.seeded import write_config


def test_a_broken_file_is_waited_for_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_config(tmp_path)
    good = path.read_text()
    path.write_text(f"{good}tasks.max = many\n")
    steps = iter([lambda: None, path.unlink, lambda: path.write_text(good)])
    monkeypatch.setattr(patient_load.time, "sleep", lambda _seconds: next(steps)())

    config = load_patiently(path)

    assert config.enabled_flows
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "tasks.max" in told[0]
    assert "cannot be read" in told[1]


def test_a_file_that_stays_broken_ends_the_waiting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_patiently(tmp_path / "gone.properties", patience_seconds=0)
