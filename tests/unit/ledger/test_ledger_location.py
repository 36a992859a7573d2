"""Where the ledger is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.local_state import STATE_DIR_VARIABLE
from mirror_lib.config.model import MirrorConfig
from mirror_lib.errors import LedgerError
from mirror_lib.ledger.location import ledger_url, open_ledger
from mirror_lib.ledger.store import Ledger


def _config(url: str | None, path: str = "/etc/mirror/mirror.properties") -> MirrorConfig:
    return MirrorConfig(path=path, clusters=("a", "b"), flows=(), ledger_url=url)


def test_without_a_setting_it_is_a_file_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_DIR_VARIABLE, str(tmp_path))

    assert ledger_url(_config(None)) == f"sqlite:///{tmp_path}/ledger.sqlite3"


def test_only_a_relative_file_counts_from_the_configuration_file() -> None:
    """Airflow, Spark and people run the same file from different folders."""
    assert ledger_url(_config("sqlite:///state/l.sqlite3")) == "sqlite:////etc/mirror/state/l.sqlite3"
    for url in ("sqlite:////var/l.sqlite3", "postgresql://me:p%40ss@host/db?sslmode=require"):
        assert ledger_url(_config(url)) == url


def test_a_setting_that_is_no_url_is_left_for_the_ledger_to_refuse() -> None:
    with pytest.raises(LedgerError, match="not a URL"):
        Ledger.open(ledger_url(_config("over there")))


def test_given_no_ledger_when_opened_for_a_configuration_then_it_can_be_used_at_once(tmp_path: Path) -> None:
    config = _config("sqlite:///l.sqlite3", str(tmp_path / "mirror.properties"))

    with open_ledger(config) as ledger:
        assert ledger.runs() == ()

    assert (tmp_path / "l.sqlite3").is_file()
