"""Commands that ask no cluster read files whose secrets only tasks of Airflow can look up."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from tests.support.ledger.ledgers import ready_ledger

_FILE = """\
config.providers = airflow
config.providers.airflow.class = mirror_lib.AirflowSecretProvider
clusters = A, B
A.bootstrap.servers = ${airflow:connection/kafka_a:host}
A.ssl.key.password = ${airflow:connection/kafka_a:password}
B.bootstrap.servers = b:9092
A->B.enabled = true
mirror.ledger.url = sqlite:///ledger.sqlite3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_A", raising=False)
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3").close()
    return path


@pytest.mark.parametrize("command", [("metrics",), ("status",), ("cutover", "list")])
def test_the_ledger_is_shown_without_asking_airflow(file: Path, command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--config", str(file)])
    assert result.exit_code == 0, result.output


def test_what_a_good_file_asks_of_this_machine_is_checked_without_asking_airflow(file: Path) -> None:
    """The project's own environment lacks what Kerberos needs."""
    file.write_text(
        f"{_FILE}B.security.protocol = SASL_SSL\nB.sasl.mechanism = GSSAPI\nB.sasl.jaas.config = M required;\n"
    )

    result = CliRunner().invoke(app, ["config", "check", str(file)])

    assert result.exit_code == 0, result.output
    assert "B: sasl.mechanism=GSSAPI will fail on this machine" in result.output


def test_a_command_that_asks_a_cluster_needs_them(file: Path) -> None:
    result = CliRunner().invoke(app, ["plan", "--config", str(file), "--flow", "A->B"])
    assert result.exit_code == 2
