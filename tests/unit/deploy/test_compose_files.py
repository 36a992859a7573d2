"""The container files cannot be run here, where there is no engine; these are the mistakes that can be seen without."""

import base64
import ipaddress
import json
import re
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from mirror_lib.spark.submit import spark_defaults
from tests.support.compose import new_secrets

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
    assert set(VARIABLE.findall(text)) == declared


def test_services_wait_only_for_services_that_exist_and_can_tell(compose):
    for name, service in compose["services"].items():
        assert "image" in service, name
        for other, rule in service.get("depends_on", {}).items():
            awaited = compose["services"][other]
            assert rule["condition"] != "service_healthy" or "healthcheck" in awaited, f"{name} waits for {other}"


def test_named_volumes_are_declared_and_mounted_files_exist(compose):
    used = {volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", ())}
    assert {each for each in used if not each.startswith((".", "/", "$"))} == set(compose["volumes"])
    mounted = {each for each in used if each.startswith("./")}
    generated = {path for path in mounted if path.startswith("./deploy/secrets/")}
    assert generated == {"./deploy/secrets/spark-defaults.conf"}
    assert mounted - generated == {
        *("./deploy/postgres", "./deploy/prometheus"),
        *("./deploy/grafana/provisioning", "./deploy/grafana/mirror.json"),
    }
    assert all((PROJECT / path).exists() for path in mounted - generated)


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


def test_secrets_are_declared_and_the_metrics_token_is_where_both_sides_read_it(compose):
    users = {name: service["secrets"] for name, service in compose["services"].items() if "secrets" in service}
    assert users == {each: ["mirror-metrics-token"] for each in ("airflow-apiserver", "prometheus")}
    assert set(compose["secrets"]) == {"mirror-metrics-token"}
    token = compose["services"]["airflow-apiserver"]["environment"]["MIRROR_METRICS_TOKEN_FILE"]
    scrape = yaml.safe_load((PROJECT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"][0]
    assert token == scrape["authorization"]["credentials_file"] == "/run/secrets/mirror-metrics-token"
    assert scrape["static_configs"][0]["targets"] == ["airflow-apiserver:8080"]


def test_pages_are_published_to_this_machine_only(compose):
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_each_broker_has_a_cluster_of_its_own(compose):
    brokers = [compose["services"][name] for name in ("kafka-a", "kafka-b")]
    assert len({broker["environment"]["CLUSTER_ID"] for broker in brokers}) == 2
    for broker in brokers:
        assert len(broker["environment"]["CLUSTER_ID"]) == 22
        assert broker["environment"]["KAFKA_CONTROLLER_QUORUM_VOTERS"] == f"1@{broker['hostname']}:9093"


def test_the_image_is_built_from_files_that_exist_and_does_not_run_as_root():
    dockerfile = (PROJECT / "deploy" / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.+)$", dockerfile, flags=re.MULTILINE):
        for source in line.split()[:-1]:
            assert (PROJECT / source).exists(), source
    assert re.findall(r"^USER (.+)$", dockerfile, flags=re.MULTILINE) == ["50000:0"]
    # Nothing is done as root behind it.
    assert "RUN" not in dockerfile[dockerfile.index("USER 50000") :]


def test_the_file_is_valid_by_the_schema_of_the_specification(compose):
    schema = json.loads((Path(__file__).parent / "compose_spec" / "compose-spec.json").read_text())
    assert [each.message for each in Draft7Validator(schema).iter_errors(compose)] == []
    # Which can find something.
    assert list(Draft7Validator(schema).iter_errors({"services": {"a": {"imagee": "b"}}}))


def test_no_container_gets_more_than_it_needs(compose):
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not {"privileged", "cap_add", "network_mode", "pid", "ipc", "devices"} & set(service), name
        assert not str(service.get("user", "1")).startswith(("0", "root")), name
        assert not [volume for volume in service.get("volumes", ()) if "docker.sock" in str(volume)], name


def test_what_containers_write_is_a_volume_or_memory(compose):
    """A folder is mounted once, and what the image's own programs write is not on the read-only root."""
    for name, service in compose["services"].items():
        volumes = [volume.rsplit(":ro", 1)[0].rsplit(":", 1)[1] for volume in service.get("volumes", ())]
        memory = [each.partition(":")[0] for each in service.get("tmpfs", ())]
        assert len({*volumes, *memory}) == len(volumes) + len(memory), name
        if service["image"] == "batch-mirror:local":
            assert {"/tmp", "/opt/airflow"} <= {*volumes, *memory}, name
        for volume in service.get("volumes", ()):
            # A folder of the project is never written to.
            assert volume.endswith(":ro") or not volume.startswith((".", "$")), volume


def test_networks_keep_apart_what_need_not_meet(compose):
    members = {}
    for name, service in compose["services"].items():
        assert service["networks"], name
        for network in service["networks"]:
            members.setdefault(network, set()).add(name)
    airflow = {name for name in compose["services"] if name.startswith("airflow-")}
    assert members == {
        "data": {"postgres", "driver-host", *airflow},
        "spark": {"spark-master", "spark-worker", "airflow-scheduler"},
        "warm": {"spark-connect", "driver-host", "airflow-scheduler"},
        "metrics": {"prometheus", "grafana", "airflow-apiserver"},
        "clusters": {"kafka-a", "kafka-b", "spark-worker", "spark-connect", "driver-host", "airflow-scheduler"},
        "pages": {"airflow-apiserver", "spark-master", "prometheus", "grafana"},
    }
    assert set(compose["networks"]) == set(members)
    # Flows may name clusters elsewhere, and pages are for this machine; nobody else needs a way out.
    assert {name for name, each in compose["networks"].items() if not each.get("internal")} == {"clusters", "pages"}
    # A port can be published by a network with a way out only.
    published = {name for name, service in compose["services"].items() if "ports" in service}
    assert published == members["pages"]
    assert compose["networks"]["pages"]["driver_opts"] == {"com.docker.network.bridge.enable_icc": "false"}


def test_connect_listens_in_its_own_network_only(text, compose):
    connect = compose["services"]["spark-connect"]
    address = connect["networks"]["warm"]["ipv4_address"]
    assert f"--conf=spark.connect.grpc.binding.address={address}" in connect["command"]
    assert connect["healthcheck"]["test"][-1] == f"sc://{address}:15002"
    assert "0.0.0.0" not in text
    default, subnet = (
        each.partition(":-")[2].rstrip("}")
        for each in (address, compose["networks"]["warm"]["ipam"]["config"][0]["subnet"])
    )
    assert ipaddress.ip_address(default) in ipaddress.ip_network(subnet).hosts()


def test_nothing_starts_without_secrets_and_none_is_known(text):
    example = dict(
        line.split("=", 1) for line in (PROJECT / ".env.example").read_text().splitlines() if re.match("[A-Z_]+=", line)
    )
    secrets = {name for name in example if re.search("PASSWORD|SECRET|KEY|TOKEN", name)}
    assert secrets == {"POSTGRES_PASSWORD", "GRAFANA_PASSWORD", "AIRFLOW_JWT_SECRET", "AIRFLOW_FERNET_KEY"}
    assert {example[name] for name in secrets} == {""}
    for name in secrets:
        uses = re.findall(rf"\$\{{{name}([^}}]*)}}", text)
        assert uses, name
        # Empty counts as missing, too.
        assert {use.partition(" ")[0] for use in uses} == {":?run"}, name


def test_secrets_are_made_once_and_are_this_user_s_and_git_ignores_them(tmp_path):
    variables, folder = new_secrets(tmp_path / "one")
    others, _ = new_secrets(tmp_path / "two")
    again = subprocess.run(["sh", str(folder.parent / "new-secrets.sh")], capture_output=True, text=True, check=True)

    made = {name for name in variables if variables[name] != others[name]}
    assert made == {"POSTGRES_PASSWORD", "GRAFANA_PASSWORD", "AIRFLOW_JWT_SECRET", "AIRFLOW_FERNET_KEY"}
    assert all(len(base64.urlsafe_b64decode(variables[name])) == 32 for name in made)
    assert again.stderr == ""
    assert stat.S_IMODE((tmp_path / "one" / ".env").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # Containers of several users read these.
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o644}
    assert {each.name for each in folder.iterdir()} == {"metrics-token", "spark-defaults.conf"}
    ignored = (PROJECT / ".gitignore").read_text().splitlines()
    assert {".env", "deploy/secrets/"} <= set(ignored)
    assert {".env", "deploy/secrets"} <= set((PROJECT / ".dockerignore").read_text().splitlines())


def test_spark_s_parts_know_each_other_and_encrypt(compose, tmp_path):
    _, folder = new_secrets(tmp_path / "project")
    settings = spark_defaults({"SPARK_CONF_DIR": str(folder)})
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.network.crypto.enabled"] == "true"
    assert settings["spark.io.encryption.enabled"] == "true"
    assert len(base64.urlsafe_b64decode(settings["spark.authenticate.secret"])) == 32
    dockerfile = (PROJECT / "deploy" / "Dockerfile").read_text()
    (where,) = re.findall(r'SPARK_CONF_DIR="([^"]+)"', dockerfile)
    for name, service in compose["services"].items():
        if service["image"] == "batch-mirror:local":
            mounted = f"./deploy/secrets/spark-defaults.conf:{where}/spark-defaults.conf:ro"
            assert mounted in service["volumes"], name
