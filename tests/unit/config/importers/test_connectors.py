"""Connectors become a file; that MM2 understands it in the same way is shown in `tests/integration/interop`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.importers.connectors import ImportedConnectors, import_connectors
from mirror_lib.config.importers.kinds import recognise
from mirror_lib.config.importers.questions import Answers
from mirror_lib.config.model import PoisonPolicy
from mirror_lib.config.settings.definitions import MM2_FLOW
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.errors import ConfigurationError
from tests.support.connectors import connector, flow

WORKER = {
    "bootstrap.servers": "b1:9092",
    "group.id": "connect",
    "config.storage.topic": "c",
    "offset.storage.topic": "connect-offsets",
}
VERSION = "kafka-version=4.3.0"


def imported(
    connectors: Sequence[Mapping[str, Any]], *answers: str, worker: Mapping[str, str] | None = None
) -> ImportedConnectors:
    files = [(f"{index}.json", json.dumps(each).encode()) for index, each in enumerate(connectors)]
    if worker is not None:
        files.append(("worker.properties", "\n".join(f"{key}={value}" for key, value in worker.items()).encode()))
    given_answers = Answers.parse((VERSION, *answers))
    clusters = recognise(files, given_answers).clusters
    return import_connectors(clusters, given_answers, jaas_options=lambda text: parse_jaas(text).options)


def assignments(result: ImportedConnectors) -> dict[str, str]:
    entries = parse_properties(result.text.encode("ascii")).entries
    assert len({entry.key for entry in entries}) == len(entries)
    return {entry.key: entry.value for entry in entries}


def questions(result: ImportedConnectors) -> dict[str, list[str]]:
    return {each.id: [choice for choice, _ in each.choices] for each in result.questions}


def reasons(result: ImportedConnectors) -> dict[str, str]:
    return {each.name: each.reason for each in result.listed}


def test_three_connectors_are_one_flow() -> None:
    lines = assignments(imported(flow(topics="a,b", tasks__max="3", sync__group__offsets__enabled="true")))

    assert lines["clusters"] == "A, B"
    assert lines["A.bootstrap.servers"] == "a1:9092,a2:9092"
    assert lines["B.bootstrap.servers"] == "b1:9092"
    assert lines["A->B.topics"] == "a,b"
    assert lines["A->B.enabled"] == lines["A->B.emit.heartbeats.enabled"] == "true"
    assert lines["emit.heartbeats.enabled"] == "false"
    assert "A->B.emit.checkpoints.enabled" not in lines


def test_connectors_that_are_missing_are_switched_off() -> None:
    lines = assignments(imported(flow()[:1]))

    assert lines["A->B.emit.checkpoints.enabled"] == "false"
    assert lines["A->B.emit.heartbeats.enabled"] == "false"


def test_without_a_source_connector_nothing_is_copied() -> None:
    undecided = imported(flow()[1:])
    decided = imported(flow()[1:], "A->B.source-connector=none")

    assert questions(undecided) == {"A->B.source-connector": ["none"]}
    assert assignments(decided)["A->B.enabled"] == "false"
    assert decided.questions == ()


def test_no_flow_is_enabled_while_a_question_is_open() -> None:
    result = imported(flow(errors__tolerance="all"))

    assert questions(result) == {"A->B.errors.tolerance": ["fail", "skip", "quarantine"]}
    assert assignments(result)["A->B.enabled"] == "false"
    assert "--answer 'A->B.errors.tolerance=skip'" in result.text


def test_what_becomes_of_records_that_connect_skipped() -> None:
    for policy in list(PoisonPolicy):
        lines = assignments(imported(flow(errors__tolerance="all"), f"A->B.errors.tolerance={policy}"))

        assert lines["A->B.mirror.poison.policy"] == policy, policy
        assert lines["A->B.enabled"] == "true", policy


def test_a_setting_that_two_connectors_read_and_have_differently_is_a_question() -> None:
    source, checkpoint, heartbeat = flow(topics="a")
    checkpoint |= {"topics": "b", "groups": "g", "replication.factor": "9"}
    source |= {"groups": "ignored"}

    result = imported([source, checkpoint, heartbeat])
    decided = imported([source, checkpoint, heartbeat], "A->B.topics=checkpoint")

    assert questions(result) == {"A->B.topics": ["source", "checkpoint"]}
    assert assignments(decided)["A->B.topics"] == "b"
    assert assignments(decided)["A->B.groups"] == "g"
    assert {"groups", "replication.factor"} <= reasons(decided).keys()


def test_a_policy_that_one_connector_lacks_is_a_question() -> None:
    source, checkpoint, _ = flow()
    source["replication.policy.separator"] = "-"

    result = imported([source, checkpoint])
    default = imported([source, checkpoint], "A->B.replication.policy.separator=default")

    assert questions(result) == {"A->B.replication.policy.separator": ["source", "default"]}
    assert "A->B.replication.policy.separator" not in assignments(default)


def test_secrets_are_in_no_question() -> None:
    source, checkpoint, _ = flow()
    source["source.cluster.ssl.key.password"], checkpoint["source.cluster.ssl.key.password"] = "hush1", "hush2"

    (question,) = imported([source, checkpoint]).questions

    assert "hush" not in "\n".join(question.lines())


def test_two_source_connectors_of_a_flow_are_a_question() -> None:
    one, other = connector("Source", name="x", topics="a"), connector("Source", name="y", topics="b")

    assert questions(imported([one, other])) == {"A->B.source-connector": ["x", "y"]}
    assert assignments(imported([one, other], "A->B.source-connector=y"))["A->B.topics"] == "b"
    assert imported([one, one]).questions == ()


def test_flows_that_see_a_cluster_differently_are_a_question() -> None:
    back = connector("Source", "B", "A")
    back["source.cluster.bootstrap.servers"] = "b2:9092"

    result = imported([*flow(), back])
    decided = imported([*flow(), back], "B.bootstrap.servers=B->A")

    assert questions(result) == {"B.bootstrap.servers": ["A->B", "B->A"]}
    assert assignments(decided)["B.bootstrap.servers"] == "b2:9092"


def test_the_order_of_brokers_is_no_question() -> None:
    source, checkpoint, _ = flow()
    checkpoint["source.cluster.bootstrap.servers"] = "a2:9092, a1:9092"

    assert imported([source, checkpoint]).questions == ()


# The producer of the data


def test_a_worker_of_other_brokers_is_a_question() -> None:
    for answer in ["target", "producer"]:
        worker = {**WORKER, "bootstrap.servers": "elsewhere:9092"}

        result = imported(flow(), worker=worker)
        lines = assignments(imported(flow(), f"A->B.data-brokers={answer}", worker=worker))

        assert questions(result) == {"A->B.data-brokers": ["target", "producer"]}, answer
        expected = "elsewhere:9092" if answer == "producer" else None
        assert lines.get("A->B.producer.override.bootstrap.servers") == expected, answer


def test_positions_of_a_worker_are_taken_over_where_they_stand_under_our_name() -> None:
    ours = [connector("Source", name="MirrorSourceConnector")]

    assert "B.offset.storage.topic" not in assignments(imported(flow(name="mm2"), worker=WORKER))
    assert assignments(imported(ours, worker=WORKER))["B.offset.storage.topic"] == "connect-offsets"


def test_the_worker_gives_intervals_and_exactly_once() -> None:
    worker = {
        **WORKER,
        "offset.flush.interval.ms": "5",
        "exactly.once.source.support": "enabled",
        "plugin.path": "/p",
        "consumer.fetch.min.bytes": "1",
    }

    result = imported(flow(), worker=worker)

    assert assignments(result)["B.offset.flush.interval.ms"] == "5"
    assert assignments(result)["B.exactly.once.source.support"] == "enabled"
    assert {"plugin.path", "consumer.fetch.min.bytes", "group.id", "config.storage.topic"} <= reasons(result).keys()


def test_converters_that_change_records_are_a_question() -> None:
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    connectors = flow()
    for each in connectors:
        del each["value.converter"]

    of_worker = imported(connectors, worker={**WORKER, "value.converter": json_converter})
    of_connector = imported(flow(value__converter=json_converter))

    assert questions(of_worker) == questions(of_connector) == {"A->B.value.converter": ["bytes"]}


def test_transforms_keep_the_converters_of_the_worker() -> None:
    connectors = flow(transforms="t", transforms__t__type="org.apache.kafka.connect.transforms.InsertHeader")
    del connectors[0]["value.converter"]
    worker = {**WORKER, "value.converter": "j.J", "value.converter.schemas.enable": "false"}

    lines = assignments(imported(connectors, worker=worker))

    assert lines["A->B.transforms"] == "t"
    assert lines["A->B.value.converter"] == "j.J"
    assert lines["A->B.value.converter.schemas.enable"] == "false"


# Versions, names of others


def test_the_default_exclusions_are_those_of_the_version() -> None:
    for version, expected in [
        ("2.4.0", r".*[\-\.]internal, .*\.replica, __.*"),
        ("4.2.0", r".*[\-\.]internal, .*\.replica, __.*"),
        ("4.3", None),
    ]:
        documents = {
            "m": {
                "info": {"config": connector("Source")},
                "status": {"connector": {"version": version, "state": "RUNNING"}},
            }
        }
        answers = Answers({})
        clusters = recognise([("x", json.dumps(documents).encode())], answers).clusters

        result = import_connectors(clusters, answers, jaas_options=lambda _: {})

        assert result.questions == (), version
        assert assignments(result).get("A->B.topics.exclude") == expected, version


def test_old_names_count_before_kafka_4() -> None:
    for version, counts in [("3.9", True), ("4.0", False)]:
        answers = Answers({"kafka-version": version})
        clusters = recognise([("x", json.dumps(connector("Source", topics__blacklist="b")).encode())], answers).clusters

        result = import_connectors(clusters, answers, jaas_options=lambda _: {})

        assert (assignments(result)["A->B.topics.exclude"] == "b") is counts, version
        assert ("topics.blacklist" in reasons(result)) is not counts, version


def test_an_unknown_version_is_a_question() -> None:
    answers = Answers({})
    clusters = recognise([("x", json.dumps(connector("Source")).encode())], answers).clusters

    result = import_connectors(clusters, answers, jaas_options=lambda _: {})

    assert list(questions(result)) == ["kafka-version"]


def test_a_java_policy_is_a_question() -> None:
    for answer, expected in [
        ("identity", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
        ("default", None),
        ("my.package.Policy", "my.package.Policy"),
    ]:
        connectors = flow(replication__policy__class="com.example.TopicReplicationPolicy")

        assert list(questions(imported(connectors))) == ["A->B.replication.policy.class"], answer
        lines = assignments(imported(connectors, f"A->B.replication.policy.class={answer}"))
        assert lines.get("A->B.replication.policy.class") == expected, answer


def test_strimzis_policy_is_kafkas() -> None:
    lines = assignments(
        imported(flow(replication__policy__class="io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"))
    )

    assert lines["A->B.replication.policy.class"] == "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def test_settings_of_aws_pass_through_unchanged() -> None:
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }

    lines = assignments(
        imported([connector("Source") | {f"source.cluster.{name}": value for name, value in login.items()}])
    )

    assert {name: lines[f"A.{name}"] for name in login} == login


def test_strimzis_oauth_library_becomes_kafkas_login() -> None:
    jaas = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'oauth.client.id="me" oauth.client.secret="${env:S}" oauth.token.endpoint.uri="https://t";'
    )
    handler = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
    prefix = "source.cluster.sasl."
    settings = {f"{prefix}jaas.config": jaas, f"{prefix}login.callback.handler.class": handler}

    lines = assignments(imported([each | settings for each in flow()]))

    assert lines["A.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="me" clientSecret="${env:S}";'
    )
    assert lines["A.sasl.oauthbearer.token.endpoint.url"] == "https://t"
    assert "strimzi" not in lines["A.sasl.login.callback.handler.class"]


# Variables


def test_variables_of_kafkas_own_providers_stay() -> None:
    worker = {
        **WORKER,
        "config.providers": "f,env",
        "config.providers.f.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.f.param.allowed.paths": "/etc",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    connectors = flow(source__cluster__ssl__key__password="${f:/etc/x.properties:p}", topics="${env:TOPICS}")

    lines = assignments(imported(connectors, worker=worker))

    assert lines["A.ssl.key.password"] == "${f:/etc/x.properties:p}"
    assert lines["A->B.topics"] == "${env:TOPICS}"
    assert set(lines["config.providers"].split(", ")) == {"f", "env"}
    assert lines["config.providers.f.class"] == worker["config.providers.f.class"]
    assert lines["config.providers.f.param.allowed.paths"] == "/etc"


def test_secrets_of_kubernetes_become_folders() -> None:
    worker = {
        **WORKER,
        "config.providers": "secrets",
        "config.providers.secrets.class": "io.strimzi.kafka.KubernetesSecretConfigProvider",
    }

    result = imported(flow(source__cluster__ssl__key__password="x${secrets:ns/name:key}"), worker=worker)

    assert assignments(result)["A.ssl.key.password"] == "x${secrets:/etc/mirror/secrets/ns/name:key}"
    assert "Folder /etc/mirror/secrets/ns/name with the keys of ns/name as files: key" in result.text


def test_an_unknown_provider_is_a_question() -> None:
    for answer, expected in [
        ("env", "${env:MIRROR_PATH_KEY}"),
        ("dir", "${secrets:/etc/mirror/secrets/path:key}"),
        ("keep", "${vault:path:key}"),
    ]:
        connectors = flow(source__cluster__ssl__key__password="${vault:path:key}")

        assert questions(imported(connectors)) == {"provider.vault": ["env", "dir", "keep"]}, answer
        assert assignments(imported(connectors, f"provider.vault={answer}"))["A.ssl.key.password"] == expected, answer


def test_placeholders_of_other_tools_are_a_question() -> None:
    connectors = flow(topics="${TOPICS}")

    assert list(questions(imported(connectors))) == ["placeholders"]
    lines = assignments(imported(connectors, "placeholders=env"))
    assert (lines["A->B.topics"], lines["config.providers"]) == ("${env:TOPICS}", "env")


# Answers, aliases


def test_answers_to_nothing_are_refused(subtests: pytest.Subtests) -> None:
    for answer in ["nothing=1", "A->B.errors.tolerance=perhaps", "x", "=x"]:
        with subtests.test(answer), pytest.raises(ConfigurationError):
            imported(flow(errors__tolerance="all"), answer)


def test_aliases_that_cannot_be_used_are_refused(subtests: pytest.Subtests) -> None:
    for alias in ["", "a b", "a->b", "A", "a\u202eb"]:
        with subtests.test(alias), pytest.raises(ConfigurationError, match="alias"):
            imported([connector("Source") | {"target.cluster.alias": alias}])


def test_every_setting_is_a_line_or_a_comment() -> None:
    result = imported(flow(unknown__setting="1", consumer__override__max__poll__records="2", security__protocol="SSL"))

    for name in ("unknown.setting", "consumer.override.max.poll.records", "security.protocol"):
        assert reasons(result)[name]
    assert "#   unknown.setting = 1" in result.text
    assert (
        "A->B.source.consumer.max.poll.records would reach its consumer"
        in reasons(result)["consumer.override.max.poll.records"]
    )


def test_names_of_strangers_are_no_lines_of_the_file() -> None:
    for text in ["x\nA->B.topics=evil", "\u202e", "\x1b[2J", "\ud800", "\u20ac'#"]:
        document = {text: {"info": {"config": connector("Source", unknown=text)}}}
        answers = Answers({"kafka-version": "4.3"})
        clusters = recognise([("x", json.dumps(document).encode())], answers).clusters

        result = import_connectors(clusters, answers, jaas_options=lambda _: {})

        assert "A->B.topics" not in assignments(result), text
        assert result.text.replace("\n", "").isprintable(), text


def test_aliases_need_not_be_ascii() -> None:
    result = imported([connector("Source") | {"source.cluster.alias": "k\u00f6ln"}])

    assert assignments(result)["k\u00f6ln->B.mirror.schedule"] == "5m"


_NAMES = st.one_of(
    st.sampled_from([each.name for each in MM2_FLOW]),
    st.sampled_from(sorted(f"{side}.cluster.{name}" for side in ("source", "target") for name in CLIENT_SET)),
    st.sampled_from(
        ("consumer.override.x", "transforms.a.type", "topics.blacklist", "producer.override.acks", "config.providers")
    ),
    st.builds(
        lambda prefix, name: prefix + name,
        st.sampled_from(("source.consumer.", "consumer.", "target.producer.", "admin.", "producer.override.", "")),
        st.one_of(st.sampled_from(sorted(CLIENT_SET)), st.text(max_size=6)),
    ),
)
_VALUES = st.one_of(
    st.text(max_size=8), st.sampled_from(("true", "false", "all", "1", "${env:X}", "${x:y:z}", "${A}", "SSL"))
)


_KINDS = st.sampled_from(("Source", "Checkpoint", "Heartbeat"))
#: Old names get their new ones, and records that Connect skipped are a question.
_RENAMED = {"topics.blacklist", "groups.blacklist", "config.properties.blacklist", "errors.tolerance"}
_OF_A_CONNECTOR = {"connector.class", "name", "enabled", "source.cluster.alias", "target.cluster.alias"}


@given(st.dictionaries(_KINDS, st.dictionaries(_NAMES, _VALUES, max_size=4), min_size=1))
def test_whatever_connectors_have_comes_out(described: dict[str, dict[str, str]]) -> None:
    connectors = [connector(kind) | settings | connector(kind) for kind, settings in described.items()]

    result = imported(connectors)

    assert assignments(result)
    told = {each.name for each in (*result.placed, *result.listed)}
    told |= {each.name.removeprefix("source.").removeprefix("target.") for each in result.placed}
    for name in {name for each in connectors for name in each} - _OF_A_CONNECTOR - _RENAMED:
        assert name in told or name.removeprefix("source.cluster.").removeprefix("target.cluster.") in told, name
