"""Resources of Strimzi. Expected settings are those of Strimzi's own tests (`KafkaMirrorMaker2ConnectorsTest`)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connectors import import_connectors
from mirror_lib.features.importers.model import ConnectCluster, Connector, ConnectorKind
from mirror_lib.features.importers.questions import Answers
from mirror_lib.features.importers.strimzi import clusters_in
from tests.support.refusals import read_or_refused

V1 = "kafka.strimzi.io/v1"
V1BETA2 = "kafka.strimzi.io/v1beta2"
SOURCE: Mapping[str, Any] = {"alias": "source", "bootstrapServers": "source:9092"}
TARGET: Mapping[str, Any] = {"alias": "target", "bootstrapServers": "target:9092"}
PLAIN = {
    "source.cluster.alias": "source",
    "source.cluster.bootstrap.servers": "source:9092",
    "source.cluster.security.protocol": "PLAINTEXT",
    "target.cluster.alias": "target",
    "target.cluster.bootstrap.servers": "target:9092",
    "target.cluster.security.protocol": "PLAINTEXT",
}


def old_form(mirror: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """As v1beta2 had it."""
    return {
        "apiVersion": V1BETA2,
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "name", "namespace": "namespace"},
        "spec": {
            "connectCluster": "target",
            "clusters": [dict(SOURCE), dict(TARGET)],
            "mirrors": [{"sourceCluster": "source", "targetCluster": "target", **mirror}],
            **spec,
        },
    }


def new_form(mirror: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """As v1 has it."""
    target = {
        **TARGET,
        "groupId": "my-group",
        "configStorageTopic": "c",
        "offsetStorageTopic": "o",
        "statusStorageTopic": "s",
    }
    return {
        "apiVersion": V1,
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "name", "namespace": "namespace"},
        "spec": {"target": target, "mirrors": [{"source": dict(SOURCE), **mirror}], **spec},
    }


def read(resource: Any, answers: Answers | None = None) -> ConnectCluster:
    (found,) = clusters_in((resource,), "x.yaml", answers or Answers({}))
    return found


def config_of(resource: Any, kind: ConnectorKind = ConnectorKind.SOURCE) -> dict[str, str]:
    connector = one(read(resource), kind)
    return {name: value for name, value in connector.config.items() if name != "connector.class"}


def one(cluster: ConnectCluster, kind: ConnectorKind = ConnectorKind.SOURCE) -> Connector:
    (found,) = (each for each in cluster.connectors if each.kind is kind)
    return found


MIRROR: Mapping[str, Any] = {
    "sourceConnector": {"tasksMax": "5", "config": {"sync.topic.acls.enabled": "false"}},
    "checkpointConnector": {"tasksMax": "3", "config": {"sync.group.offsets.enabled": "true"}},
    "topicsPattern": "my-topic-.*",
    "topicsExcludePattern": "exclude-topic-.*",
    "groupsPattern": "my-group-.*",
    "groupsExcludePattern": "exclude-group-.*",
}
PATTERNS = {
    "topics": "my-topic-.*",
    "topics.exclude": "exclude-topic-.*",
    "groups": "my-group-.*",
    "groups.exclude": "exclude-group-.*",
}


def test_connectors_have_what_strimzi_gives_them() -> None:
    for form in [old_form, new_form]:
        resource = form(MIRROR)

        assert config_of(resource) == {**PLAIN, **PATTERNS, "sync.topic.acls.enabled": "false", "tasks.max": "5"}, form
        assert config_of(resource, ConnectorKind.CHECKPOINT) == {
            **PLAIN,
            **PATTERNS,
            "sync.group.offsets.enabled": "true",
            "tasks.max": "3",
        }, form
        assert [each.name for each in read(resource).connectors] == [
            "source->target.MirrorSourceConnector",
            "source->target.MirrorCheckpointConnector",
        ], form


def test_which_clusters_a_connector_overrides_depends_on_the_version(subtests: pytest.Subtests) -> None:
    overriding = {
        "target.cluster.security.protocol": "XXX",
        "source.cluster.security.protocol": "YYY",
    }

    assert config_of(new_form({"sourceConnector": {"config": overriding}})) == {**PLAIN, **overriding}

    for answer, expected in [("before-0.49", "PLAINTEXT"), ("since-0.49", "YYY")]:
        with subtests.test(answer):
            resource = old_form({"sourceConnector": {"config": {"source.cluster.security.protocol": "YYY"}}})
            undecided = Answers({})
            read(resource, undecided)
            found = read(resource, Answers({"strimzi-version": answer}))

            assert list(undecided.open) == ["strimzi-version"]
            assert one(found).config["source.cluster.security.protocol"] == expected


def test_old_names_of_patterns_count_where_the_new_ones_are_missing() -> None:
    old = {"topicsBlacklistPattern": "a", "groupsBlacklistPattern": "b"}

    both = config_of(old_form({"sourceConnector": {}, **old, "topicsExcludePattern": "c"}))

    assert (both["topics.exclude"], both["groups.exclude"]) == ("c", "b")


def _with_source(**cluster: Any) -> dict[str, str]:
    config = config_of(new_form({"source": {**SOURCE, **cluster}, "sourceConnector": {}}))
    return {
        name.removeprefix("source.cluster."): value
        for name, value in config.items()
        if name.startswith("source.cluster.")
        and name not in ("source.cluster.alias", "source.cluster.bootstrap.servers")
    }


def test_tls() -> None:
    tls = {"trustedCertificates": [{"secretName": "my-tls", "certificate": "ca.crt"}]}
    login = {
        "type": "tls",
        "certificateAndKey": {"secretName": "my-secret", "certificate": "my.crt", "key": "my.key"},
    }

    assert _with_source(tls={}) == {"security.protocol": "SSL"}
    assert _with_source(tls=tls, authentication=login) == {
        "security.protocol": "SSL",
        "ssl.truststore.certificates": "${strimzisecrets:namespace/my-tls:ca.crt}",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.certificate.chain": "${strimzisecrets:namespace/my-secret:my.crt}",
        "ssl.keystore.key": "${strimzisecrets:namespace/my-secret:my.key}",
        "ssl.keystore.type": "PEM",
    }


def test_passwords() -> None:
    for kind, mechanism, module in [
        ("plain", "PLAIN", "plain.PlainLoginModule"),
        ("scram-sha-256", "SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("scram-sha-512", "SCRAM-SHA-512", "scram.ScramLoginModule"),
    ]:
        login = {
            "type": kind,
            "username": "shaza",
            "passwordSecret": {"secretName": "my-secret", "password": "pa55word"},
        }
        jaas = (
            f'org.apache.kafka.common.security.{module} required username="shaza" '
            'password="${strimzisecrets:namespace/my-secret:pa55word}";'
        )

        found = _with_source(authentication=login)

        assert found == {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
        }, kind
        assert _with_source(authentication=login, tls={})["security.protocol"] == "SASL_SSL", kind


def test_a_custom_login_lets_only_its_own_settings_through() -> None:
    config = {"sasl.mechanism": "AWS_MSK_IAM", "ssl.keystore.location": "/k", "not.allowed": "foo"}
    resource = new_form(
        {
            "source": {**SOURCE, "authentication": {"type": "custom", "sasl": "true", "config": config}},
            "sourceConnector": {},
        }
    )

    found = read(resource)

    settings = one(found).config
    assert settings["source.cluster.sasl.mechanism"] == "AWS_MSK_IAM"
    assert settings["source.cluster.ssl.keystore.location"] == "/k"
    assert settings["source.cluster.security.protocol"] == "SASL_PLAINTEXT"
    assert ("not.allowed", "foo") in [(each.name, each.value) for each in found.listed]


def _oauth(**more: Any) -> tuple[dict[str, str], Answers]:
    login = {
        "type": "oauth",
        "clientId": "me",
        "clientSecret": {"secretName": "s", "key": "k"},
        "tokenEndpointUri": "https://t/token",
        **more,
    }
    answers = Answers({})
    mirror = {"sourceConnector": {}}
    clusters = [{**SOURCE, "authentication": login}, dict(TARGET)]
    found = one(read(old_form(mirror, clusters=clusters), answers)).config
    return {key.removeprefix("source.cluster."): value for key, value in found.items()}, answers


def test_client_credentials_and_token_files_become_kafkas_own_login_and_other_grants_a_question() -> None:
    found, answers = _oauth(scope="kafka", tlsTrustedCertificates=[{"secretName": "ca", "certificate": "c.crt"}])

    assert answers.open == {}
    assert found["sasl.mechanism"] == "OAUTHBEARER"
    assert found["sasl.oauthbearer.token.endpoint.url"] == "https://t/token"
    assert found["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'clientId="me" clientSecret="${strimzisecrets:namespace/s:k}" scope="kafka" '
        'ssl.truststore.location="${strimzisecretfile:namespace/ca:c.crt}" ssl.truststore.type="PEM";'
    )

    found, answers = _oauth(accessTokenLocation="/var/run/token")

    assert answers.open == {}
    assert found["sasl.oauthbearer.token.endpoint.url"] == "file:/var/run/token"

    for more in [
        {"clientAssertionLocation": "/jwt"},
        {"refreshToken": {"secretName": "s", "key": "k"}},
        {"username": "u", "passwordSecret": {"secretName": "s", "password": "p"}},
        {"audience": "kafka"},
        {"tokenEndpointUri": None},
    ]:
        found, answers = _oauth(**more)

        assert list(answers.open) == ["login.source"], more
        assert "sasl.jaas.config" not in found, more


def test_certificates_by_a_pattern() -> None:
    def resource(name: str) -> dict[str, Any]:
        tls = {"trustedCertificates": [{"secretName": name, "pattern": "*.crt"}]}
        return new_form({"source": {**SOURCE, "tls": tls}, "sourceConnector": {}})

    strimzis = read(resource("my-cluster-ca-cert"))
    answers = Answers({})
    read(resource("other"), answers)
    answered = read(resource("other"), Answers({"secret.other": "a.crt, b.crt"}))

    name = "source.cluster.ssl.truststore.certificates"
    assert one(strimzis).config[name] == "${strimzisecrets:namespace/my-cluster-ca-cert:ca.crt}"
    assert "ca.crt" in strimzis.notes[0]
    assert list(answers.open) == ["secret.other"]
    assert one(answered).config[name] == (
        "${strimzisecrets:namespace/other:a.crt}\n${strimzisecrets:namespace/other:b.crt}"
    )


def test_pauses_and_the_status_tell_the_state_of_a_connector() -> None:
    for spec, paused in [
        ({}, False),
        ({"pause": "true"}, True),
        ({"pause": "false"}, False),
        ({"state": "paused"}, True),
        ({"state": "stopped"}, True),
        ({"state": "running", "pause": "true"}, False),
    ]:
        assert one(read(old_form({"sourceConnector": spec}))).paused is paused, spec

    resource = new_form({"sourceConnector": {}})
    resource["status"] = {
        "connectorPlugins": [
            {"class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "type": "source", "version": "4.3.0"}
        ],
        "connectors": [{"name": "source->target.MirrorSourceConnector", "connector": {"state": "STOPPED"}}],
    }

    found = one(read(resource))

    assert (found.version, found.paused) == ("4.3.0", True)
    resource["spec"]["version"] = "4.2.0"
    assert one(read(resource)).version == "4.2.0"


def test_the_worker_has_the_config_of_the_target() -> None:
    config = {"offset.flush.interval.ms": "7", "producer.linger.ms": "1"}
    clusters = [dict(SOURCE), {**TARGET, "config": config}]

    worker = read(old_form({"sourceConnector": {}}, clusters=clusters)).worker

    assert worker.connects_as_target
    assert worker.settings["offset.flush.interval.ms"] == "7"
    assert worker.settings["offset.storage.topic"] == "mirrormaker2-cluster-offsets"
    newer = read(new_form({"sourceConnector": {}})).worker
    assert newer.settings["offset.storage.topic"] == "o"


def test_each_mirror_asks_for_itself_whether_connect_is_its_target() -> None:
    mirrors = [
        {"sourceCluster": "source", "targetCluster": "target", "sourceConnector": {}},
        {"sourceCluster": "target", "targetCluster": "source", "sourceConnector": {}},
    ]

    found = clusters_in((old_form({}, mirrors=mirrors),), "x", Answers({}))

    assert [each.worker.connects_as_target for each in found if each.worker] == [True, False]
    assert found[1].worker is not None
    assert found[1].worker.settings["bootstrap.servers"] == "target:9092"


def test_given_a_mirror_without_connectors_next_to_another_then_a_note_names_it() -> None:
    mirrors = [
        {"sourceCluster": "source", "targetCluster": "target", "sourceConnector": {}},
        {"sourceCluster": "target", "targetCluster": "source"},
    ]

    found = clusters_in((old_form({}, mirrors=mirrors),), "x", Answers({}))

    assert [len(each.notes) for each in found] == [0, 1]
    assert "spec.mirrors[1] has neither sourceConnector" in found[1].notes[0]


def test_what_strimzi_does_not_let_through_is_listed() -> None:
    connector = {"config": {"tasks.max": "8", "topics": "a"}, "unknown": "1"}

    found = read(old_form({"sourceConnector": connector, "config": {"replication.factor": "3"}}))

    assert "tasks.max" not in one(found).config
    assert {each.name for each in found.listed} == {"tasks.max", "unknown", "config"}


def test_other_operators_have_strimzis_fields_or_are_named() -> None:
    resource = old_form({"sourceConnector": {}})

    found = clusters_in(({**resource, "apiVersion": "eventstreams.ibm.com/v1beta2"},), "x", Answers({}))
    assert [each.config for each in found[0].connectors] == [each.config for each in read(resource).connectors]
    with pytest.raises(ConfigurationError, match=r"only KafkaMirrorMaker2 of vendor\.example\.com/v1"):
        clusters_in(({**resource, "apiVersion": "vendor.example.com/v1"},), "x", Answers({}))


def test_connectors_of_their_own_kind() -> None:
    resource = {
        "apiVersion": V1BETA2,
        "kind": "KafkaConnector",
        "metadata": {"name": "mm2"},
        "spec": {
            "class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasksMax": "2",
            "config": {"topics": "a", "source.cluster.alias": "x"},
        },
    }
    other = {**resource, "spec": {"class": "io.example.Sink"}}

    found = clusters_in((resource, other), "x", Answers({}))

    assert [(each.name, each.config["tasks.max"]) for each in found[0].connectors] == [("mm2", "2")]


def test_broken_resources_name_the_path(subtests: pytest.Subtests) -> None:
    for spec, message in [
        ({"mirrors": "x"}, "spec.mirrors has no mirror"),
        ({"mirrors": [{"sourceCluster": "source", "targetCluster": "target"}]}, "no mirror has a connector"),
        ({"mirrors": [[]]}, r"spec.mirrors\[0\] must be an object"),
        ({"mirrors": [{"sourceCluster": "no"}]}, r"spec.mirrors\[0\].sourceCluster refers to 'no'"),
        ({"mirrors": [{"sourceCluster": ""}]}, r"spec.mirrors\[0\].sourceCluster is missing"),
        ({"clusters": [{"alias": "source"}, dict(TARGET)]}, r"spec.clusters\[0\].bootstrapServers is missing"),
        (
            {"clusters": [{**SOURCE, "authentication": {"type": "kerberos"}}, dict(TARGET)]},
            r"spec.clusters\[0\].authentication.type must be one of",
        ),
        (
            {"clusters": [{**SOURCE, "authentication": {"type": "tls"}}, dict(TARGET)]},
            "certificateAndKey must have a secretName",
        ),
    ]:
        with subtests.test(message):
            with pytest.raises(ConfigurationError, match=message) as caught:
                read(old_form({"sourceConnector": {}}, **spec))

            assert caught.value.action


_FULL = old_form(
    MIRROR | {"heartbeatConnector": {}},
    clusters=[
        {
            **SOURCE,
            "tls": {"trustedCertificates": [{"secretName": "a", "certificate": "b"}]},
            "authentication": {
                "type": "scram-sha-512",
                "username": "u",
                "passwordSecret": {"secretName": "s", "password": "p"},
            },
            "config": {"a": "b"},
        },
        {
            **TARGET,
            "authentication": {
                "type": "oauth",
                "clientId": "x",
                "tokenEndpointUri": "https://x",
                "clientSecret": {"secretName": "s", "key": "k"},
                "saslExtensions": {"a": "b"},
            },
        },
    ],
)
_FULL["status"] = {"connectors": [{"name": "x", "connector": {"state": "y"}}], "connectorPlugins": [{"class": "z"}]}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, each in inner for found in _paths(each, (*path, key)))]


_ANY = st.recursive(
    st.one_of(st.text(max_size=4), st.none(), st.sampled_from(("true", "null", "custom", "oauth", "tls", "plain"))),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=4,
)


@given(st.lists(st.tuples(st.sampled_from(_paths(_FULL)[1:]), _ANY), min_size=1, max_size=3))
def test_a_resource_with_anything_anywhere_is_read_or_refused(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    resource = copy.deepcopy(_FULL)
    for path, value in changes:
        place: Any = resource
        try:
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    answers = Answers({})
    with read_or_refused():
        imported = import_connectors(
            clusters_in((resource,), "x", answers), answers, jaas_options=lambda text: parse_jaas(text).options
        )
        assert parse_properties(imported.text.encode("ascii")).entries
