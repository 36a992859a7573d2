"""`${airflow:...}`: who may look it up, who leaves it as it is, and where it may stand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mirror_lib.config.loader import InvalidConfigurationError, check, explain, load
from mirror_lib.config.secrets.lookup_context import HANDED_OVER, Surroundings, TaskValues, reading_in, without_lookups
from mirror_lib.config.secrets.masking import printable_value
from mirror_lib.config.secrets.providers import NotLookedUpError, ProviderError
from mirror_lib.features.airflow_secrets.environment import connection_values, environment_value
from mirror_lib.features.airflow_secrets.values import Reference

_FILE = """
config.providers = airflow
config.providers.airflow.class = mirror_lib.AirflowSecretProvider
clusters = berlin, paris
berlin.bootstrap.servers = ${airflow:connection/kafka_berlin:host}:${airflow:connection/kafka_berlin:port}
berlin.security.protocol = ${airflow:variable:kafka_protocol}
berlin.sasl.mechanism = PLAIN
berlin.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="${airflow:connection/kafka_berlin:login}" password="${airflow:connection/kafka_berlin:password}";
paris.bootstrap.servers = paris:9092
berlin->paris.enabled = true
"""
_CONNECTION = {"conn_type": "kafka", "login": "mirror", "password": "bear", "host": "berlin", "port": 9093}
#: As a task has looked them up.
_VALUES = {
    "variable:kafka_protocol": "SASL_SSL",
    **{f"connection/kafka_berlin:{name}": str(_CONNECTION[name]) for name in ("login", "password", "host", "port")},
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AIRFLOW_CONN_KAFKA_BERLIN", "AIRFLOW_VAR_KAFKA_PROTOCOL", HANDED_OVER):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    return path


def test_who_connects_to_no_cluster_reads_the_file_without_looking_anything_up(file: Path) -> None:
    with without_lookups():
        config = load(file)

    assert config.warnings == ()
    client = config.flow("berlin->paris").clients.source_admin
    assert client.properties["security.protocol"] == "${airflow:variable:kafka_protocol}"


def test_outside_airflow_the_error_names_each_variable_that_airflow_defines_for_it(file: Path) -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        load(file)

    assert "AIRFLOW_CONN_KAFKA_BERLIN" in str(caught.value)
    assert "AIRFLOW_VAR_KAFKA_PROTOCOL" in str(caught.value)


def test_outside_airflow_its_environment_variables_count(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_BERLIN", json.dumps(_CONNECTION))
    monkeypatch.setenv("AIRFLOW_VAR_KAFKA_PROTOCOL", "SASL_PLAINTEXT")

    client = load(file).flow("berlin->paris").clients.source_admin

    assert client.properties["bootstrap.servers"] == "berlin:9093"
    assert 'password="bear"' in client.properties["sasl.jaas.config"]


def test_a_spark_driver_gets_what_the_task_has_resolved_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HANDED_OVER, json.dumps(_VALUES))

    assert load(file).flow("berlin->paris").clients.source_admin.properties["bootstrap.servers"] == "berlin:9093"
    with pytest.raises(ProviderError, match="AIRFLOW_CONN_KAFKA_PARIS"):
        environment_value(Reference("kafka_paris", "password"), {HANDED_OVER: "{}"})


def test_people_look_at_a_file_without_having_its_secrets(file: Path) -> None:
    assert check(file) == ()
    settings = explain(file, "berlin->paris")

    assert (
        printable_value("security.protocol", settings["source-admin/security.protocol"])
        == "${airflow:variable:kafka_protocol}"
    )
    assert printable_value("sasl.jaas.config", settings["source-admin/sasl.jaas.config"]) == "[hidden]"


def test_what_makes_dags_and_the_page_cannot_come_from_airflow(file: Path, subtests: pytest.Subtests) -> None:
    for line in [
        "mirror.ledger.url = postgresql://mirror:${airflow:connection/ledger:password}@host/db",
        "berlin->paris.topics = ${airflow:variable:topics}",
        "berlin->paris.mirror.schedule = ${airflow:variable:schedule}",
    ]:
        with subtests.test(line):
            file.write_text(f"{_FILE}{line}\n")
            with without_lookups(), pytest.raises(InvalidConfigurationError, match="only in connection settings"):
                load(file)


def test_other_references_and_missing_fields_are_errors_that_name_them(subtests: pytest.Subtests) -> None:
    for path, key in [
        ("connection/x", "passwd"),
        ("connection/x", "extra."),
        ("connection/", "password"),
        ("x", "password"),
        ("", "x"),
        ("variable", ""),
    ]:
        with subtests.test(path), pytest.raises(ProviderError, match="is not a valid reference to Airflow"):
            Reference.parse(path, key)

    with pytest.raises(ProviderError, match="kafka_berlin has no password"):
        connection_values('{"login": "me"}', "X").value(Reference("kafka_berlin", "password"))

    with pytest.raises(NotLookedUpError):
        environment_value(Reference("x", "password"), {}, is_needed=False)


def test_extras_are_values_too() -> None:
    found = connection_values('{"extra": {"ssl.keystore.password": "k", "deep": {"a": 1}, "on": true}}', "X")

    assert found.value(Reference("c", "extra.ssl.keystore.password")) == "k"
    assert found.value(Reference("c", "extra.deep")) == '{"a": 1}'
    assert found.value(Reference("c", "extra.on")) == "true"


def test_a_connection_that_cannot_be_read_is_not_repeated(subtests: pytest.Subtests) -> None:
    for text in ["{", "no uri", '{"extra": 5}', "kafka://me:top-secret@host:port-none/"]:
        with subtests.test(text):
            with pytest.raises(ProviderError) as caught:
                connection_values(text, "AIRFLOW_CONN_X")

            assert "top-secret" not in str(caught.value)
            assert caught.value.__suppress_context__


def test_secrets_are_told_before_the_file_can_be_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_PASSWORD", "otter")
    file.write_text(
        _FILE.replace("= airflow\n", "= airflow, env\n")
        + "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        + "mirror.ledger.url = postgresql://me:${env:LEDGER_PASSWORD}@host/db\nparis.ssl.key.password = inline\n"
        + "mirror.nonsense = 1\n"
    )
    told: dict[str, tuple[str, Sequence[str]]] = {}

    def tell(key: str, value: str, given: Sequence[str]) -> None:
        told[key] = (value, given)

    task = Surroundings(task=TaskValues(found=dict(_VALUES)), on_secret=tell)
    with reading_in(task), pytest.raises(InvalidConfigurationError, match="nonsense"):
        load(file)

    assert told["mirror.ledger.url"] == ("postgresql://me:otter@host/db", ("otter",))
    assert told["paris.ssl.key.password"] == ("inline", ())
    assert told["berlin.sasl.jaas.config"][1] == ("mirror", "bear")
    assert "berlin.bootstrap.servers" not in told
