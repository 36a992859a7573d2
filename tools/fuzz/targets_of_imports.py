"""Descriptions of MirrorMaker 2's connectors as input of `mirror config import`."""

from __future__ import annotations

from random import Random

from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connectors import import_connectors
from mirror_lib.features.importers.kinds import recognise
from mirror_lib.features.importers.questions import Answers
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import mutated

_JSON = rb"""{
  "mm2": {
    "info": {"name": "mm2", "config": {
      "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
      "source.cluster.alias": "A", "source.cluster.bootstrap.servers": "a:9092,a2:9092",
      "target.cluster.alias": "B", "target.cluster.bootstrap.servers": "b:9092",
      "target.cluster.sasl.login.callback.handler.class":
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
      "target.cluster.sasl.jaas.config":
        "x.OAuthBearerLoginModule required oauth.client.id=\"c\" oauth.token.endpoint.uri=\"u\";",
      "topics": "orders.*, ${env:T}", "tasks.max": 4, "errors.tolerance": "all", "enabled": true,
      "source.consumer.isolation.level": "read_committed", "producer.override.linger.ms": null}},
    "status": {"connector": {"state": "PAUSED", "version": "3.9.0"}}
  }
}"""
_YAML = rb"""
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mm2, namespace: kafka}
spec:
  connectCluster: hub
  clusters:
  - alias: london
    bootstrapServers: london:9094
    tls: {trustedCertificates: [{secretName: ca, certificate: ca.crt}]}
    authentication: &login
      type: scram-sha-512
      username: mm2
      passwordSecret: {secretName: s, password: p}
  - alias: hub
    bootstrapServers: >-
      hub:9093
    authentication: *login
    config: {offset.storage.replication.factor: -1, producer.linger.ms: 5}
  mirrors:
  - sourceCluster: london
    targetCluster: hub
    sourceConnector: {tasksMax: 10, pause: true, config: {replication.factor: 3}}
    checkpointConnector: {}
    topicsPattern: "orders.*|payments"
    groupsBlacklistPattern: test-.*
"""
_WORKER = b"bootstrap.servers=b:9092\noffset.storage.topic=o\nproducer.max.request.size=7\nconfig.providers=env\n"
_OWN = ("clusters", "emit.heartbeats.enabled")


class ImportedConnectors(Target):
    """Connect's JSON, Strimzi's resources and workers' files."""

    name = "connectors"
    what = "connectors of MirrorMaker 2, to be imported"
    errors = (ConfigurationError,)

    def make(self, random: Random) -> bytes:
        """Return some parts with NUL bytes between, one of them damaged."""
        parts = random.choice(([_JSON], [_JSON, _WORKER], [_YAML]))
        at = random.randrange(len(parts))
        parts[at] = mutated(parts[at], random, (_JSON, _YAML, _WORKER))
        return b"\0".join(parts)

    def run(self, data: bytes) -> str:
        """Check that the new file has exactly the settings that were placed."""
        answers = Answers({})
        files = [(f"file {number}", part) for number, part in enumerate(data.split(b"\0"))]
        found = recognise(files, answers)
        if not found.clusters:
            return "of MirrorMaker 1"
        made = import_connectors(found.clusters, answers, jaas_options=lambda text: parse_jaas(text).options)
        keys = [entry.key for entry in parse_properties(made.text.encode("ascii")).entries]
        if len(keys) != len(set(keys)):
            raise Wrong("a key is there twice")
        known = {*_OWN, *(each.key for each in made.placed)}
        forged = [key for key in keys if key not in known and not key.endswith(".mirror.schedule")]
        if forged:
            raise Wrong(f"nobody placed {forged[0]!r}")
        return f"{min(len(made.questions), 3)} questions"


TARGETS = (ImportedConnectors(),)
