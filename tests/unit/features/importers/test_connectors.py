"""Connectors become a file; that MM2 understands it in the same way is shown in `tests/integration/interop`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.config.settings.mm2_keys import MM2_FLOW
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connectors import ImportedConnectors, import_connectors
from mirror_lib.features.importers.kinds import recognise
from mirror_lib.features.importers.questions import Answers
from tests.support.connectors import connector, flow

WORKER = {
    "bootstrap.servers": "b1:9092",
    "group.id": "connect",
    "config.storage.topic": "c",
    "offset.storage.topic": "connect-offsets",
}
VERSION = "kafka-version=4.3.0"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
Connectors = list[dict[str, str]]


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


def flow_but(*, source: Mapping[str, str] | None = None, checkpoint: Mapping[str, str] | None = None) -> Connectors:
    """A flow whose connectors differ in some settings."""
    connectors = flow()
    return [connectors[0] | (source or {}), connectors[1] | (checkpoint or {}), connectors[2]]


@dataclass(frozen=True)
class Open:
    """What connectors leave open: the question with its choices, and what some of its answers write into the file."""

    connectors: Connectors
    question: str
    choices: Sequence[str]
    decided: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    worker: Mapping[str, str] | None = None


DIFFERING = flow_but(
    source={"topics": "a", "groups": "ignored"}, checkpoint={"topics": "b", "groups": "g", "replication.factor": "9"}
)
QUESTIONS = {
    "without a source connector nothing is copied": Open(
        flow()[1:], "A->B.source-connector", ["none"], {"none": {"A->B.enabled": "false"}}
    ),
    "records that Connect skipped": Open(
        flow(errors__tolerance="all"),
        "A->B.errors.tolerance",
        ["fail", "skip", "quarantine"],
        {policy: {"A->B.mirror.poison.policy": policy, "A->B.enabled": "true"} for policy in PoisonPolicy},
    ),
    "a setting that two connectors read and have differently": Open(
        DIFFERING, "A->B.topics", ["source", "checkpoint"], {"checkpoint": {"A->B.topics": "b", "A->B.groups": "g"}}
    ),
    "a policy that one connector lacks": Open(
        flow_but(source={"replication.policy.separator": "-"})[:2],
        "A->B.replication.policy.separator",
        ["source", "default"],
        {"default": {"A->B.replication.policy.separator": None}},
    ),
    "two source connectors of a flow": Open(
        [connector("Source", name="x", topics="a"), connector("Source", name="y", topics="b")],
        "A->B.source-connector",
        ["x", "y"],
        {"y": {"A->B.topics": "b"}},
    ),
    "flows that see a cluster differently": Open(
        [*flow(), connector("Source", "B", "A") | {"source.cluster.bootstrap.servers": "b2:9092"}],
        "B.bootstrap.servers",
        ["A->B", "B->A"],
        {"B->A": {"B.bootstrap.servers": "b2:9092"}},
    ),
    "a worker of other brokers": Open(
        flow(),
        "A->B.data-brokers",
        ["target", "producer"],
        {
            "target": {"A->B.producer.override.bootstrap.servers": None},
            "producer": {"A->B.producer.override.bootstrap.servers": "elsewhere:9092"},
        },
        worker={**WORKER, "bootstrap.servers": "elsewhere:9092"},
    ),
    "a converter of the worker that changes records": Open(
        [{name: value for name, value in each.items() if name != "value.converter"} for each in flow()],
        "A->B.value.converter",
        ["bytes"],
        worker={**WORKER, "value.converter": JSON_CONVERTER},
    ),
    "a converter of the connector that changes records": Open(
        flow(value__converter=JSON_CONVERTER), "A->B.value.converter", ["bytes"]
    ),
    "an unknown provider": Open(
        flow(source__cluster__ssl__key__password="${vault:path:key}"),
        "provider.vault",
        ["env", "dir", "keep"],
        {
            "env": {"A.ssl.key.password": "${env:MIRROR_PATH_KEY}"},
            "dir": {"A.ssl.key.password": "${secrets:/etc/mirror/secrets/path:key}"},
            "keep": {"A.ssl.key.password": "${vault:path:key}"},
        },
    ),
}


def test_what_connectors_leave_open_is_a_question_that_its_answer_decides(subtests: pytest.Subtests) -> None:
    for case, left in QUESTIONS.items():
        with subtests.test(case):
            assert questions(imported(left.connectors, worker=left.worker)) == {left.question: left.choices}
            for answer, expected in left.decided.items():
                result = imported(left.connectors, f"{left.question}={answer}", worker=left.worker)
                lines = assignments(result)
                assert {name: lines.get(name) for name in expected} == expected, answer
                assert result.questions == ()


def test_what_connectors_agree_on_is_no_question(subtests: pytest.Subtests) -> None:
    source = connector("Source", name="x", topics="a")
    other_order = {"source.cluster.bootstrap.servers": "a2:9092, a1:9092"}
    for connectors in ([source, source], flow_but(checkpoint=other_order)[:2]):
        assert imported(connectors).questions == ()
    ignored = imported(DIFFERING, "A->B.topics=checkpoint")
    assert {"groups", "replication.factor"} <= reasons(ignored).keys(), "another connector has them"


def test_a_question_about_secrets_does_not_show_them() -> None:
    passwords = [{"source.cluster.ssl.key.password": text} for text in ("hush1", "hush2")]

    (question,) = imported(flow_but(source=passwords[0], checkpoint=passwords[1])[:2]).questions

    assert "hush" not in "\n".join(question.lines())


def test_classes_and_placeholders_of_others_are_questions() -> None:
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    java = flow(replication__policy__class="com.example.TopicReplicationPolicy")
    assert list(questions(imported(java))) == ["A->B.replication.policy.class"]
    for answer, expected in (("identity", identity), ("default", None), ("my.package.Policy", "my.package.Policy")):
        lines = assignments(imported(java, f"A->B.replication.policy.class={answer}"))
        assert lines.get("A->B.replication.policy.class") == expected, answer
    strimzis = flow(replication__policy__class="io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy")
    assert assignments(imported(strimzis))["A->B.replication.policy.class"] == identity

    placeholder = flow(topics="${TOPICS}")
    assert list(questions(imported(placeholder))) == ["placeholders"]
    lines = assignments(imported(placeholder, "placeholders=env"))
    assert (lines["A->B.topics"], lines["config.providers"]) == ("${env:TOPICS}", "env")


# The producer of the data


def test_a_worker_gives_positions_under_our_name_intervals_and_exactly_once() -> None:
    ours = [connector("Source", name="MirrorSourceConnector")]

    assert "B.offset.storage.topic" not in assignments(imported(flow(name="mm2"), worker=WORKER))
    assert assignments(imported(ours, worker=WORKER))["B.offset.storage.topic"] == "connect-offsets"

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


def test_transforms_keep_the_converters_of_the_worker() -> None:
    connectors = flow(transforms="t", transforms__t__type="org.apache.kafka.connect.transforms.InsertHeader")
    del connectors[0]["value.converter"]
    worker = {**WORKER, "value.converter": "j.J", "value.converter.schemas.enable": "false"}

    lines = assignments(imported(connectors, worker=worker))

    assert lines["A->B.transforms"] == "t"
    assert lines["A->B.value.converter"] == "j.J"
    assert lines["A->B.value.converter.schemas.enable"] == "false"


# Versions, names of others


def described(document: Any, answers: Mapping[str, str]) -> ImportedConnectors:
    given_answers = Answers(answers)
    clusters = recognise([("x", json.dumps(document).encode())], given_answers).clusters
    return import_connectors(clusters, given_answers, jaas_options=lambda _: {})


def test_the_version_decides_about_default_exclusions_and_old_names() -> None:
    old_default = r".*[\-\.]internal, .*\.replica, __.*"
    for version, expected in [("2.4.0", old_default), ("4.2.0", old_default), ("4.3", None)]:
        status = {"connector": {"version": version, "state": "RUNNING"}}
        result = described({"m": {"info": {"config": connector("Source")}, "status": status}}, {})
        assert result.questions == (), version
        assert assignments(result).get("A->B.topics.exclude") == expected, version
    for version, counts in [("3.9", True), ("4.0", False)]:
        result = described(connector("Source", topics__blacklist="b"), {"kafka-version": version})
        assert (assignments(result)["A->B.topics.exclude"] == "b") is counts, version
        assert ("topics.blacklist" in reasons(result)) is not counts, version
    assert list(questions(described(connector("Source"), {}))) == ["kafka-version"]


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


# Answers, aliases


def test_answers_to_nothing_and_aliases_that_cannot_be_used_are_refused(subtests: pytest.Subtests) -> None:
    for answer in ["nothing=1", "A->B.errors.tolerance=perhaps", "x", "=x"]:
        with subtests.test(answer), pytest.raises(ConfigurationError):
            imported(flow(errors__tolerance="all"), answer)

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
        result = described(document, {"kafka-version": "4.3"})
        assert "A->B.topics" not in assignments(result), text
        assert result.text.replace("\n", "").isprintable(), text
    # Aliases need not be ASCII.
    german = imported([connector("Source") | {"source.cluster.alias": "k\u00f6ln"}])
    assert assignments(german)["k\u00f6ln->B.mirror.schedule"] == "5m"


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
