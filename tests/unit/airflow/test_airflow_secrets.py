"""Secrets in tasks: looked up by Airflow's own calls, hidden by its masker, handed to Spark by its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time.comms import ErrorResponse

from mirror_lib.airflow.compatibility import AirflowRuntimeError, BaseHook, ErrorType, Variable
from mirror_lib.airflow.files.loaded_files import load_readable as load_for_dags
from mirror_lib.airflow.flow.replicate_operator import ReplicateOperator
from mirror_lib.airflow.retries import is_hopeless
from mirror_lib.airflow.secret_masking import secret_texts, task_secrets
from mirror_lib.config.loader import InvalidConfigurationError, load
from mirror_lib.config.secrets.lookup_context import HANDED_OVER
from mirror_lib.config.secrets.providers import ProviderError
from mirror_lib.errors import ConfigurationError, TransientError
from mirror_lib.features.airflow_secrets.environment import connection_values
from mirror_lib.features.airflow_secrets.provider import AirflowSecretProvider
from tests.support.airflow.stand_in_submit import StandInSubmit
from tests.support.flow_files import write_flow

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_CONNECTION = {"conn_type": "kafka", "login": "mirror", "password": "sly-badger-71", "host": "berlin", "port": 9093}
_FILE = f"""
config.providers = airflow
config.providers.airflow.class = mirror_lib.AirflowSecretProvider
clusters = berlin, paris
berlin.bootstrap.servers = berlin:9092
berlin.sasl.jaas.config = {_MODULE} required \\
    username="${{airflow:connection/kafka_berlin:login}}" password="${{airflow:connection/kafka_berlin:password}}";
paris.bootstrap.servers = paris:9092
paris.sasl.jaas.config = {_MODULE} required username="mirror" password="plain-heron-72";
mirror.ledger.url = postgresql+psycopg://mirror:calm%2Fotter-73@ledger/mirror
berlin->paris.enabled = true
"""
_PROVIDER = AirflowSecretProvider({})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_BERLIN", json.dumps(_CONNECTION))
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    return path


def _password(config: Any) -> str:
    return str(config.flow("berlin->paris").clients.source_admin.properties["sasl.jaas.config"])


def _shown(text: str) -> str:
    from airflow.sdk.log import redact

    return str(redact(text))


def test_a_connection_is_looked_up_anew_by_every_task(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with task_secrets():
        assert "sly-badger-71" in _password(load(file))

    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_BERLIN", json.dumps({**_CONNECTION, "password": "new-badger-81"}))
    with task_secrets():
        assert "new-badger-81" in _password(load(file))

    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_BERLIN")
    with task_secrets(), pytest.raises(InvalidConfigurationError, match="no connection kafka_berlin"):
        load(file)
    # DAGs are made without asking Airflow.
    assert "${airflow:connection/kafka_berlin:password}" in _password(load_for_dags(file).config)


def _failing(kind: ErrorType) -> Any:
    def fail(*_: object) -> None:
        raise AirflowRuntimeError(ErrorResponse(error=kind, detail={"message": "sly-badger-71"}))

    return fail


def test_an_airflow_that_does_not_answer_is_asked_again_by_the_tasks_retries(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseHook, "get_connection", _failing(ErrorType.API_SERVER_ERROR))
    with task_secrets(), pytest.raises(TransientError, match="did not return the connection kafka_berlin") as failure:
        load(file)
    assert not is_hopeless(failure.value)
    assert "sly-badger-71" not in str(failure.value)

    monkeypatch.setattr(Variable, "get", _failing(ErrorType.GENERIC_ERROR))
    with task_secrets(), pytest.raises(TransientError, match="did not return the variable kafka_password"):
        _PROVIDER.get("variable", "kafka_password")


def test_what_airflow_does_not_have_or_not_show_is_an_error_of_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (ErrorType.CONNECTION_NOT_FOUND, ErrorType.VARIABLE_NOT_FOUND, ErrorType.PERMISSION_DENIED):
        monkeypatch.setattr(BaseHook, "get_connection", _failing(kind))
        with task_secrets(), pytest.raises(InvalidConfigurationError, match="connection kafka_berlin"):
            load(file)
        monkeypatch.setattr(Variable, "get", _failing(kind))
        with task_secrets(), pytest.raises(ProviderError, match="variable kafka_password"):
            _PROVIDER.get("variable", "kafka_password")


def test_variables_and_extras_are_looked_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_STORE_PASSWORD", "brave-lynx-74")
    monkeypatch.setenv("AIRFLOW_CONN_STORES", json.dumps({"conn_type": "kafka", "extra": {"key": "quiet-fox-75"}}))

    with task_secrets() as values:
        assert _PROVIDER.get("variable", "STORE_PASSWORD") == "brave-lynx-74"
        assert _PROVIDER.get("connection/stores", "extra.key") == "quiet-fox-75"

    assert list(values.found) == ["variable:STORE_PASSWORD", "connection/stores:extra.key"]


def test_dags_are_made_anew_when_a_file_of_a_provider_changes(tmp_path: Path) -> None:
    (tmp_path / "topics.properties").write_text("topics = orders\n")
    path = write_flow(
        tmp_path,
        "config.providers = file",
        "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
        f"A->B.topics = ${{file:{tmp_path}/topics.properties:topics}}",
    )
    assert load_for_dags(path).config.flow("A->B").topics == ("orders",)
    assert load_for_dags(path) is load_for_dags(path)

    (tmp_path / "topics.properties").write_text("topics = prices\n")

    assert load_for_dags(path).config.flow("A->B").topics == ("prices",)


def test_every_secret_of_the_file_is_masked_wherever_it_comes_from(file: Path) -> None:
    with task_secrets():
        load(file)

    for secret in ("sly-badger-71", "plain-heron-72", "calm/otter-73", "calm%2Fotter-73"):
        assert secret not in _shown(f"somebody says {secret} here")
    assert _shown("mirror copies from berlin to paris") == "mirror copies from berlin to paris"


def test_users_and_switches_of_a_login_module_are_not_masked_but_all_that_was_given_for_a_broken_value() -> None:
    jaas = f'{_MODULE} required username="mirror" password="x y" tokenauth="true";'
    assert set(secret_texts("A.sasl.jaas.config", jaas, ("mirror", "x y"))) >= {"x y", "x%20y", jaas}
    assert not {"mirror", "true"} & set(secret_texts("A.sasl.jaas.config", jaas, ("mirror", "x y")))

    broken = {"A.sasl.jaas.config": 'M required password="given-secret', "mirror.ledger.url": "given-secret"}
    for key, value in broken.items():
        assert "given-secret" in set(secret_texts(key, value, ["given-secret"])), key


def test_outside_airflow_a_connections_uri_is_read_as_airflow_does() -> None:
    from airflow.sdk import Connection

    fields = ("login", "password", "host", "port", "schema")
    for uri in (
        "kafka://mirror:sly%2Fbadger%4071@berlin.example:9093/x%2Fy?a=1&b=",
        "kafka://:p%3A%25w@/",
        "kafka://host/?__extra__=%7B%22ssl%22%3A+%7B%22a%22%3A+1%7D%7D",
        "kafka://https://user:pw@host:1/s",
        "kafka://",
    ):
        expected, found = Connection(conn_id="x", uri=uri), connection_values(uri, "X")
        assert [getattr(found, name) or None for name in fields] == [getattr(expected, name) or None for name in fields]
        assert found.extra == expected.extra_dejson, uri


@pytest.fixture
def replicate(submit: StandInSubmit, file: Path) -> Callable[[], StandInSubmit]:
    """Runs the operator with a stand-in for spark-submit."""

    def run() -> StandInSubmit:
        operator = ReplicateOperator(task_id="replicate", flow="berlin->paris", config_path=str(file), conn_id="spark")
        submit.execute(
            operator, {"exit_code": 0}, params={}, dag=SimpleNamespace(dag_id="mirror__berlin__paris"), run_id="manual"
        )
        fields = {name: getattr(operator, name, None) for name in operator.template_fields}
        assert "sly-badger-71" not in repr(fields)
        return submit

    return run


@pytest.mark.parametrize("master", ["local[2]", "spark://m:7077", "yarn"])
def test_spark_gets_the_values_by_its_environment_and_never_by_its_command_line(
    replicate: Callable[[], StandInSubmit], file: Path, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    connection = {"conn_type": "spark", "host": master, "extra": {"deploy-mode": "client"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps(connection))
    monkeypatch.delenv(HANDED_OVER, raising=False)

    given = replicate()

    assert json.loads(given.environment[HANDED_OVER]) == {
        "connection/kafka_berlin:login": "mirror",
        "connection/kafka_berlin:password": "sly-badger-71",
    }
    assert "sly-badger-71" not in " ".join(given.arguments)
    assert HANDED_OVER not in " ".join(given.arguments)
    # The task's own environment is as it was.
    assert HANDED_OVER not in os.environ
    file.write_text(_FILE.replace("${airflow:", "${other:"))
    assert HANDED_OVER not in replicate().environment


def test_values_that_no_environment_can_hold_are_refused_by_name(
    replicate: Callable[[], StandInSubmit], submit: StandInSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux: MAX_ARG_STRLEN is 131,072 bytes."""
    connection = {**_CONNECTION, "password": "sly-badger-71" * 11_000}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_BERLIN", json.dumps(connection))

    with pytest.raises(ConfigurationError, match=r"too long.*connection/kafka_berlin:password") as refusal:
        replicate()

    assert "sly-badger-71" not in str(refusal.value)
    assert not submit.has_run


def test_a_driver_inside_the_cluster_and_a_file_with_errors_are_refused_before_spark_starts(
    replicate: Callable[[], StandInSubmit], submit: StandInSubmit, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps(connection))
    with pytest.raises(ConfigurationError, match="env, file or directory"):
        replicate()

    monkeypatch.delenv("AIRFLOW_CONN_SPARK")
    file.write_text(f"{_FILE}mirror.nonsense = 1\n")
    with pytest.raises(InvalidConfigurationError, match="nonsense"):
        replicate()

    assert not submit.has_run
