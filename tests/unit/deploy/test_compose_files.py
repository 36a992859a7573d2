"""The container files cannot be run here, where there is no engine; these are the mistakes that can be seen without."""

import re
from pathlib import Path

import pytest
import yaml

from mirror_lib.config.load import load
from mirror_lib.topology.names import FlowId

PROJECT = Path(__file__).resolve().parents[3]
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z_]+)")


@pytest.fixture(scope="module")
def text():
    return (PROJECT / "docker-compose.yaml").read_text()


@pytest.fixture(scope="module")
def compose(text):
    return yaml.safe_load(text)


def test_every_variable_is_explained_in_the_example(text, compose):
    example = (PROJECT / ".env.example").read_text()
    declared = set(re.findall(r"^([A-Z_]+)=", example, flags=re.MULTILINE))
    of_secrets = {secret["environment"] for secret in compose["secrets"].values()}
    assert set(VARIABLE.findall(text)) | of_secrets == declared


def test_the_services_are_those_of_the_design(compose):
    assert set(compose["services"]) == {
        "postgres",
        "airflow-init",
        "airflow-apiserver",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
        "spark-master",
        "spark-worker",
        "spark-connect",
        "driver-host",
        "kafka-a",
        "kafka-b",
        "prometheus",
        "grafana",
    }


def test_services_wait_only_for_services_that_exist_and_can_tell(compose):
    for name, service in compose["services"].items():
        assert "image" in service, name
        for other, rule in service.get("depends_on", {}).items():
            awaited = compose["services"][other]
            assert rule["condition"] != "service_healthy" or "healthcheck" in awaited, f"{name} waits for {other}"


def test_the_driver_host_is_where_tasks_ask_for_it_and_sees_their_files_but_has_no_secrets(compose):
    host, scheduler = (compose["services"][name] for name in ("driver-host", "airflow-scheduler"))

    assert host["environment"] == {
        "MIRROR_DRIVER_HOST": scheduler["environment"]["MIRROR_DRIVER_HOST"],
    }
    assert host["user"] == scheduler["user"]
    assert host["volumes"] == scheduler["volumes"]
    # A task waits for its driver's report in a temporary folder.
    assert {volume.split(":")[1] for volume in host["volumes"]} >= {"/tmp", "/opt/airflow/state"}
    assert set(scheduler["volumes"]) >= set(compose["services"]["airflow-triggerer"]["volumes"])


def test_named_volumes_are_declared_and_all_used(compose):
    used = {
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
        if not volume.startswith((".", "/", "$"))
    }
    assert used == set(compose["volumes"])


def test_secrets_are_declared_and_the_metrics_token_is_where_both_sides_read_it(compose):
    users = {name: service["secrets"] for name, service in compose["services"].items() if "secrets" in service}
    assert users == {each: ["mirror-metrics-token"] for each in ("airflow-apiserver", "prometheus")}
    assert set(compose["secrets"]) == {"mirror-metrics-token"}
    token = compose["services"]["airflow-apiserver"]["environment"]["MIRROR_METRICS_TOKEN_FILE"]
    scrape = yaml.safe_load((PROJECT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"][0]
    assert token == scrape["authorization"]["credentials_file"] == "/run/secrets/mirror-metrics-token"
    assert scrape["static_configs"][0]["targets"] == ["airflow-apiserver:8080"]


def test_mounted_files_exist(compose):
    mounted = {
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
        if volume.startswith("./")
    }
    assert mounted == {
        "./deploy/postgres",
        "./deploy/prometheus",
        "./deploy/grafana/provisioning",
        "./deploy/grafana/mirror.json",
    }
    assert all((PROJECT / path).exists() for path in mounted)


def test_pages_are_published_to_this_machine_only(compose):
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_airflow_part_has_the_same_key_and_finds_the_api_server(compose):
    parts = [service for name, service in compose["services"].items() if name.startswith("airflow")]
    for key in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"):
        assert len({part["environment"][key] for part in parts}) == 1
    assert (
        parts[0]["environment"]["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://airflow-apiserver:8080/execution/"
    )


def test_each_broker_has_a_cluster_of_its_own(compose):
    brokers = [compose["services"][name] for name in ("kafka-a", "kafka-b")]
    assert len({broker["environment"]["CLUSTER_ID"] for broker in brokers}) == 2
    for broker in brokers:
        assert len(broker["environment"]["CLUSTER_ID"]) == 22
        assert broker["environment"]["KAFKA_CONTROLLER_QUORUM_VOTERS"] == f"1@{broker['hostname']}:9093"


def test_the_flow_of_the_containers_loads(compose, monkeypatch):
    monkeypatch.setenv("MIRROR_LEDGER_URL", "postgresql+psycopg://airflow:secret@postgres/mirror")
    config = load(PROJECT / "deploy" / "mirror.properties")
    assert [flow.flow for flow in config.enabled_flows] == [FlowId("A", "B")]
    servers = {config.flow("A->B").clients.source_admin.properties["bootstrap.servers"]}
    servers |= {config.flow("A->B").clients.target_admin.properties["bootstrap.servers"]}
    assert {server.partition(":")[0] for server in servers} <= set(compose["services"])
    assert config.ledger_url == "postgresql+psycopg://airflow:secret@postgres/mirror"


def test_the_image_is_built_from_files_that_exist():
    dockerfile = (PROJECT / "deploy" / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.+)$", dockerfile, flags=re.MULTILINE):
        for source in line.split()[:-1]:
            assert (PROJECT / source).exists(), source


def test_the_spark_connection_of_the_containers_is_a_master_url(compose):
    connection = yaml.safe_load(compose["services"]["airflow-scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert connection == {"conn_type": "spark", "host": "spark://spark-master", "port": 7077}
