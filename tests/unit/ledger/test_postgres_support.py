"""The PostgreSQL server of the tests: what it says on a machine without one."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.ledger import postgres
from tests.support.ledger.postgres import PostgresMissingError, postgres_server


def test_a_machine_without_the_server_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_BINARIES", tmp_path)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(PostgresMissingError, match="apt-get install -y postgresql"), postgres_server():
        pass


@pytest.mark.integration
def test_servers_run_side_by_side_and_are_gone_afterwards(postgres_url: str) -> None:
    with postgres_server() as url:
        port = urlsplit(url).port
        assert port != urlsplit(postgres_url).port

    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
