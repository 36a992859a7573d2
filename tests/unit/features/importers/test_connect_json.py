"""Connectors as Connect describes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connect_json import connectors_in
from mirror_lib.features.importers.kafka_release import kafka_release
from mirror_lib.features.importers.kinds import recognise
from mirror_lib.features.importers.model import ConnectorKind, kind_of
from mirror_lib.features.importers.questions import Answers
from tests.support.refusals import read_or_refused

CLASS = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
CONFIG = {"connector.class": CLASS, "name": "mm2", "tasks.max": 4, "enabled": True, "topics": None}
TEXTS = {"connector.class": CLASS, "name": "mm2", "tasks.max": "4", "enabled": "true"}
SINK = {"connector.class": "io.example.Sink"}


def test_every_form_gives_the_same_connector() -> None:
    for document, paused, version in [
        (CONFIG, False, None),
        ({"name": "mm2", "config": CONFIG}, False, None),
        ({"name": "mm2", "config": CONFIG, "tasks": [{"connector": "mm2", "task": 0}], "type": "source"}, False, None),
        ({"mm2": {"info": {"name": "mm2", "config": CONFIG, "tasks": []}}}, False, None),
        (
            {
                "mm2": {
                    "info": {"name": "mm2", "config": CONFIG},
                    "status": {"name": "mm2", "connector": {"state": "PAUSED", "version": "4.1.0"}},
                },
                "s": {"info": {"config": SINK}, "status": {}},
            },
            True,
            "4.1.0",
        ),
        ([SINK, {"name": "mm2", "config": CONFIG}], False, None),
        ({"connectors": [{"name": "mm2", "config": CONFIG}]}, False, None),
        # aws kafkaconnect describe-connector
        (
            {"connectorName": "mm2", "connectorConfiguration": CONFIG, "kafkaConnectVersion": "2.7.1"},
            False,
            "2.7.1",
        ),
    ]:
        (found,) = connectors_in(document, "x.json")

        assert (found.name, found.kind, found.config) == ("mm2", ConnectorKind.SOURCE, TEXTS), document
        assert found.paused is paused, document
        assert found.version == version, document


def test_what_cannot_be_used_is_named(subtests: pytest.Subtests) -> None:
    for document, message in [
        (["a", "b"], "only the names of connectors"),
        ({"a": {"status": {}}}, r"\['a'\] has no settings"),
        ({"error_code": 404, "message": "not found"}, "is an error from Connect: not found"),
        ({"a": 1}, "neither connector.class nor config"),
        (SINK, "no MirrorMaker 2 connector"),
        ([], "no MirrorMaker 2 connector"),
        ("text", "must be a connector, not a text"),
        ({"name": "m", "config": {**CONFIG, "topics": ["a"]}}, "x.json.topics must be a text or a number, not a list"),
        ({"m": {"info": {"config": [1]}}}, r"\['m'\].info.config must be an object of settings, not a list"),
    ]:
        with subtests.test(message):
            with pytest.raises(ConfigurationError, match=message) as caught:
                connectors_in(document, "x.json")

            assert caught.value.action


def test_classes_of_connectors_and_releases_of_kafka_are_known_by_their_names() -> None:
    for name, kind in [
        (CLASS, ConnectorKind.SOURCE),
        ("MirrorSourceConnector", ConnectorKind.SOURCE),
        ("MirrorCheckpoint", ConnectorKind.CHECKPOINT),
        (" org.apache.kafka.connect.mirror.MirrorHeartbeatConnector ", ConnectorKind.HEARTBEAT),
        ("com.example.MirrorSourceConnector", None),
        ("", None),
    ]:
        assert kind_of(name) is kind, name

    for version, release in [
        ("3.9.0", (3, 9)),
        ("4.1.0-SNAPSHOT", (4, 1)),
        ("3.9.0.redhat-00001", (3, 9)),
        ("2.7", (2, 7)),
        # Confluent's platform 7.6 is Kafka 3.6, 8.0 is 4.0, 6.2 is 2.8.
        ("7.6.1-ccs", (3, 6)),
        ("8.0.0-ce", (4, 0)),
        ("6.2.0-ccs", (2, 8)),
        ("1", None),
        ("unknown", None),
    ]:
        assert kafka_release(version) == release, version


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=5),
                st.sampled_from(("connector.class", "config", "info", "status", "name", "connector", "items", "kind")),
                st.sampled_from(("apiVersion", "spec", "mirrors", "error_code", "connectorConfiguration")),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(_JSON.map(lambda document: json.dumps(document).encode()))
def test_any_json_is_read_or_refused(data: bytes) -> None:
    with read_or_refused():
        recognise([("x", data)], Answers({}))


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with read_or_refused():
        recognise([("x", data)], Answers({}))
