"""Connectors of MirrorMaker 2 as people have them on a Connect cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_MIRROR = "org.apache.kafka.connect.mirror"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
#: What examples on the web share.
_PLAIN: Mapping[str, str] = {"key.converter": _BYTES, "value.converter": _BYTES}
BROKERS = {"A": "a1:9092,a2:9092", "B": "b1:9092", "C": "c1:9092"}


def connector(kind: str, source: str = "A", target: str = "B", **more: str) -> dict[str, str]:
    """The settings of a connector; `__` in a name stands for a dot."""
    return {
        "connector.class": f"{_MIRROR}.Mirror{kind}Connector",
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.bootstrap.servers": BROKERS[source],
        "target.cluster.bootstrap.servers": BROKERS[target],
        **_PLAIN,
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def flow(source: str = "A", target: str = "B", **more: str) -> list[dict[str, str]]:
    """All three connectors of a flow, each with all settings."""
    return [connector(kind, source, target, **more) for kind in ("Source", "Checkpoint", "Heartbeat")]


@dataclass(frozen=True, slots=True)
class ConnectCase:
    """Connectors, their worker, and the answers that their import needs."""

    connectors: list[dict[str, str]]
    worker: Mapping[str, str] | None = None
    answers: tuple[str, ...] = ("kafka-version=4.3.1",)
    #: What the producer of the data has beyond the settings of the target cluster, by the rules of Connect's worker.
    producer: Mapping[str, str] = field(default_factory=dict)


_SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p w\\"d";'
_TOPICS = {"topics": "orders.*,payments", "topics__exclude": r".*[\-\.]internal, orders\.old", "groups": "billing,x.*"}

CASES: Mapping[str, ConnectCase] = {
    "defaults": ConnectCase(flow()),
    "filters": ConnectCase(flow(**_TOPICS, groups__exclude="xa.*", config__properties__exclude="retention.*,min.*")),
    "identity": ConnectCase(flow(replication__policy__class=f"{_MIRROR}.IdentityReplicationPolicy")),
    "separator": ConnectCase(
        flow(
            replication__policy__separator="_",
            replication__policy__internal__topic__separator__enabled="false",
            **{"offset-syncs.topic.location": "target"},
        )
    ),
    "intervals": ConnectCase(
        flow(
            refresh__topics__interval__seconds="5",
            sync__topic__configs__enabled="false",
            sync__topic__acls__interval__seconds="7",
            refresh__groups__interval__seconds="8",
            emit__checkpoints__interval__seconds="9",
            sync__group__offsets__enabled="true",
            sync__group__offsets__interval__seconds="10",
            emit__heartbeats__interval__seconds="11",
            replication__factor="-1",
            offset__lag__max="12",
            heartbeats__topic__replication__factor="1",
            checkpoints__topic__replication__factor="2",
            heartbeats__replication__enabled="false",
            admin__timeout__ms="1234",
            **{"offset-syncs.topic.replication.factor": "1"},
        )
    ),
    "logins": ConnectCase(
        flow(
            source__cluster__security__protocol="SASL_SSL",
            source__cluster__sasl__mechanism="SCRAM-SHA-512",
            source__cluster__sasl__jaas__config=_SCRAM,
            target__cluster__security__protocol="SSL",
            target__cluster__ssl__truststore__location="/etc/trust.jks",
            target__cluster__ssl__truststore__password="${env:STORE}",
        )
    ),
    "client overrides": ConnectCase(
        flow(
            source__cluster__security__protocol="SSL",
            consumer__security__protocol="PLAINTEXT",
            source__consumer__isolation__level="read_committed",
            source__consumer__auto__offset__reset="latest",
            consumer__request__timeout__ms="1000",
            source__consumer__request__timeout__ms="2000",
            source__admin__request__timeout__ms="3000",
            admin__request__timeout__ms="4000",
            target__admin__security__protocol="SSL",
            consumer__fetch__min__bytes="5",
            producer__override__max__request__size="1048577",
            producer__override__batch__size="7",
            producer__override__request__timeout__ms="8000",
        ),
        producer={"max.request.size": "1048577", "request.timeout.ms": "8000"},
    ),
    "producer to the target, by override": ConnectCase(
        [
            *flow(producer__override__bootstrap__servers="b1:9092")[:1],
            *flow()[1:],
        ]
    ),
    "producer of another listener": ConnectCase(
        flow(producer__override__bootstrap__servers="b9:9999", producer__override__security__protocol="SSL"),
        answers=("kafka-version=4.3.1", "A->B.data-brokers=producer"),
        producer={"bootstrap.servers": "b9:9999", "security.protocol": "SSL"},
    ),
    "worker": ConnectCase(
        flow(target__cluster__security__protocol="SSL", producer__override__request__timeout__ms="9"),
        worker={
            "bootstrap.servers": "b1:9092",
            "group.id": "connect",
            "offset.storage.topic": "connect-offsets",
            "config.storage.topic": "connect-configs",
            "security.protocol": "SSL",
            "producer.security.protocol": "SSL",
            "producer.ssl.endpoint.identification.algorithm": "",
            "producer.max.request.size": "77",
            "producer.request.timeout.ms": "88",
            "producer.linger.ms": "5",
            "key.converter": _BYTES,
        },
        producer={
            "ssl.endpoint.identification.algorithm": "",
            "max.request.size": "77",
            "request.timeout.ms": "9",
        },
    ),
    "hub and spokes": ConnectCase([*flow("A", "B", topics="a"), *flow("C", "B", topics="c"), *flow("B", "A")[:1]]),
    "no heartbeats, no checkpoints": ConnectCase(flow(**_TOPICS)[:1]),
    "names with blanks and backslashes": ConnectCase(
        flow(topics=r" \Qa.b\E , c\.d ", replication__policy__separator=" ", topics__exclude="^x$")
    ),
}

#: What `kubectl get kmm2 -o yaml` prints.
KUBECTL = """\
apiVersion: v1
items:
- apiVersion: kafka.strimzi.io/v1beta2
  kind: KafkaMirrorMaker2
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"kafka.strimzi.io/v1beta2","kind":"KafkaMirrorMaker2","spec":{"mirrors":[]}}
    creationTimestamp: "2025-01-08T10:00:00Z"
    managedFields:
    - manager: kubectl
    name: mm2
    namespace: kafka
  spec:
    clusters:
    - alias: london
      authentication:
        passwordSecret:
          password: password
          secretName: mm2-london
        type: scram-sha-512
        username: mm2
      bootstrapServers: london.example.com:9094
      tls:
        trustedCertificates:
        - certificate: ca.crt
          secretName: london-ca
    - alias: paris
      bootstrapServers: paris:9092
    - alias: hub
      authentication:
        certificateAndKey:
          certificate: user.crt
          key: user.key
          secretName: mm2-hub
        type: tls
      bootstrapServers: hub-kafka-bootstrap:9093
      config:
        offset.storage.replication.factor: 3
        producer.max.request.size: 5242880
      tls:
        trustedCertificates: []
    connectCluster: hub
    metricsConfig:
      type: jmxPrometheusExporter
      valueFrom:
        configMapKeyRef:
          key: metrics-config.yml
          name: mm2-metrics
    mirrors:
    - checkpointConnector:
        config:
          sync.group.offsets.enabled: true
        tasksMax: 2
      groupsBlacklistPattern: test-.*
      heartbeatConnector: {}
      sourceCluster: london
      sourceConnector:
        autoRestart:
          enabled: true
        config:
          replication.factor: 3
          source.consumer.isolation.level: read_committed
          sync.topic.acls.enabled: "false"
        tasksMax: 10
      targetCluster: hub
      topicsBlacklistPattern: .*-dlq
      topicsPattern: orders.*|payments
    - sourceCluster: paris
      sourceConnector:
        pause: true
      targetCluster: hub
    replicas: 3
    resources:
      limits:
        memory: 4Gi
    version: 3.9.0
  status:
    observedGeneration: 7
kind: List
metadata:
  resourceVersion: ""
"""
