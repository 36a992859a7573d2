"""`mirror config import` of Connect's connectors and Strimzi's resources, as somebody uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml
from click.testing import Result
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config import loader as load
from tests.support.connectors import KUBECTL, flow


def _run(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["config", "import", *map(str, arguments)], input=given)


def _secrets(folder: Path, secrets: Mapping[str, str]) -> Path:
    for path, value in secrets.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(value)
    return folder


def test_the_output_of_kubectl_becomes_a_file_that_is_fine_where_the_secrets_are(tmp_path: Path) -> None:
    secrets = _secrets(
        tmp_path / "secrets",
        {
            "kafka/mm2-london/password": "hush",
            "kafka/london-ca/ca.crt": "C",
            "kafka/mm2-hub/user.crt": "U",
            "kafka/mm2-hub/user.key": "K",
        },
    )
    path = tmp_path / "mirror.properties"

    result = _run("--secrets-folder", secrets, "--output", path, given=KUBECTL)

    assert (result.exit_code, result.stdout) == (0, "")
    assert [load.describe(each) for each in load.check(path)] == []
    config = load.load(path)
    assert [str(each.flow) for each in config.enabled_flows] == ["london->hub", "paris->hub"]
    london, paris = config.enabled_flows
    assert (london.topics, london.topics_exclude) == (("orders.*|payments",), (".*-dlq",))
    assert (london.tasks_max, london.isolation_level, london.schedule) == (10, "read_committed", "5m")
    consumer, producer = (each.properties for each in (london.clients.data_consumer, london.clients.data_producer))
    assert 'username="mm2" password="hush"' in consumer["sasl.jaas.config"]
    assert (consumer["ssl.truststore.certificates"], producer["ssl.keystore.key"]) == ("C", "K")
    # The default of Kafka 3.9, which leaves out more than that of today.
    assert paris.topics_exclude == (r".*[\-\.]internal", r".*\.replica", "__.*")


def test_what_has_no_effect_is_a_comment_and_secrets_are_not_needed_to_look() -> None:
    result = _run(given=KUBECTL)

    assert result.exit_code == 0
    for line in ("#   replicas = 3", "#   metricsConfig = (...)", "#   autoRestart = "):
        assert line in result.stdout
    assert "error" not in result.stderr


def test_json_of_kubectl_and_a_resource_whose_lines_are_all_indented_mean_the_same() -> None:
    shown = _run(given=KUBECTL).stdout

    assert _run(given=json.dumps(yaml.safe_load(KUBECTL))).stdout == shown
    assert _run(given="".join(f"    {line}" for line in KUBECTL.splitlines(keepends=True))).stdout == shown


def test_questions_are_answered_by_options(tmp_path: Path) -> None:
    connectors = tmp_path / "c"
    connectors.write_text(json.dumps(flow(errors__tolerance="all")))

    asked = _run(connectors)
    answered = _run(connectors, "--answer", "A->B.errors.tolerance=skip", "--answer", "kafka-version=4.3")

    assert asked.exit_code == 3
    assert "--answer 'A->B.errors.tolerance=skip'" in asked.stderr
    assert "A->B.enabled = false" in asked.stdout
    assert (answered.exit_code, "Open questions" in answered.stderr) == (0, False)
    assert "A->B.mirror.poison.policy = skip\n" in answered.stdout
    assert "A->B.enabled = true\n" in answered.stdout


def test_files_are_told_apart_by_their_content(tmp_path: Path) -> None:
    source, checkpoint, heartbeat = flow()
    files = {
        "one": json.dumps({"name": "s", "config": source}),
        "two.txt": json.dumps({"c": {"info": {"config": checkpoint}}}),
        "three.yaml": "".join(f"{name}={value}\n" for name, value in heartbeat.items()),
        "worker": "bootstrap.servers=b1:9092\noffset.storage.topic=o\noffset.flush.interval.ms=7\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    result = _run(*(tmp_path / name for name in files), "--answer", "kafka-version=4.3")

    assert result.exit_code == 0
    assert "B.offset.flush.interval.ms = 7\n" in result.stdout
    assert "A->B.emit.heartbeats.enabled = true\n" in result.stdout
    assert "No worker file" not in result.stderr


def test_files_of_mirror_maker_1_are_told_apart_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("bootstrap.servers=a:9092\ngroup.id=g\n")
    (tmp_path / "b").write_text("bootstrap.servers=b:9092\nacks=all\n")

    result = _run(tmp_path / "b", tmp_path / "a", "--whitelist", "x", "--source", "A", "--target", "B")

    assert result.exit_code == 0
    assert "A.bootstrap.servers = a:9092\n" in result.stdout


def test_the_document_has_questions_and_no_secret() -> None:
    given = json.dumps(flow(source__cluster__ssl__key__password="hush"))

    result = _run("--json", given=given)

    document = json.loads(result.stdout)
    assert "hush" not in result.stdout
    assert (document["exit_code"], [each["id"] for each in document["questions"]]) == (3, ["kafka-version"])
    assert {"A->B.enabled", "A.bootstrap.servers"} <= {each["key"] for each in document["placed"]}


def test_remaining_errors_end_with_exit_code_2() -> None:
    connectors = [each | {"target.cluster.bootstrap.servers": "b"} for each in flow()]

    result = _run("--answer", "kafka-version=4.3", given=json.dumps(connectors))

    assert result.exit_code == 2
    assert "B.bootstrap.servers must be a list of addresses" in result.stderr


def test_what_cannot_be_imported_says_why_and_what_to_do() -> None:
    chart = "{{- if .Values.on }}\napiVersion: kafka.strimzi.io/v1\nkind: KafkaMirrorMaker2\n{{- end }}\n"
    for given, told in {
        "": "is empty",
        '["a"]': "only the names of connectors",
        "clusters=A,B\n": "needs no import",
        "bootstrap.servers=b:9092\noffset.storage.topic=o\n": "no MirrorMaker 2 connector was passed",
        "foo=bar\n": "is unknown",
        "apiVersion: v1\nkind: Secret\n": "only Secret",
        "apiVersion: v1\nkind: [\n": "line 3",
        chart: "as templates do",
        "{% if on %}\nclusters = A, B\n{% endif %}\n": "as templates do",
        "bootstrap.servers=a:9092\ngroup.id=g\n": (
            "missing from the MirrorMaker 1 configuration: --producer.config and --include"
        ),
    }.items():
        result = _run(given=given)

        assert (result.exit_code, result.stdout) == (2, ""), given
        assert told in result.stderr
        assert len(result.stderr.splitlines()) == 2, given
