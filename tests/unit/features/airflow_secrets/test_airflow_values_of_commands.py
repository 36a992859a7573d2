"""Commands that ask no cluster read files whose secrets only tasks of Airflow can look up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger
from tests.support.terminal import invoke

_LINES = (
    "config.providers = airflow",
    "config.providers.airflow.class = mirror_lib.AirflowSecretProvider",
    "A.bootstrap.servers = ${airflow:connection/kafka_a:host}",
    "A.ssl.key.password = ${airflow:connection/kafka_a:password}",
    LEDGER,
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_A", raising=False)
    ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3").close()
    return write_flow(tmp_path, *_LINES)


def test_the_ledger_is_shown_without_asking_airflow_and_a_cluster_is_not(file: Path) -> None:
    for command in (("metrics",), ("status",), ("cutover", "list")):
        code, _, told = invoke(*command, "--config", file)
        assert code == 0, told
    assert invoke("plan", "--config", file, "--flow", "A->B")[0] == 2


def test_what_a_good_file_asks_of_this_machine_is_checked_without_asking_airflow(tmp_path: Path) -> None:
    """The project's own environment lacks what Kerberos needs."""
    login = ("B.security.protocol = SASL_SSL", "B.sasl.mechanism = GSSAPI", "B.sasl.jaas.config = M required;")

    code, shown, told = invoke("config", "check", write_flow(tmp_path, *_LINES, *login))

    assert code == 0, told
    assert "B: sasl.mechanism=GSSAPI will fail on this machine" in shown + told
