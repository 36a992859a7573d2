"""One topic that the flow's user may not look into or read: told with its reason, and everything else is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from mirror_lib.airflow.compatibility import AirflowFailException
from mirror_lib.airflow.flow import sync_tasks
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.config.topology import flow_topology
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.dev.broker_config import WITH_ACLS
from mirror_lib.sync.configs.flow import apply_flow_configs
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import admin, consume, create_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = "User:alice"
NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False, "gaps": "ask"}


@pytest.fixture(scope="module")
def guarded_source(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaCluster]:
    """A source at which the flow logs in as alice, who is allowed nothing by itself."""
    overrides = {
        **WITH_ACLS,
        "listener.name.password.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.password.plain.sasl.jaas.config": f'{_MODULE} required user_alice="wonderland";',
    }
    with KafkaCluster(
        "guarded-source",
        directory=brokers_folder / "guarded-source",
        jars=kafka_jars,
        overrides=overrides,
        listeners={"PLAINTEXT": "PLAINTEXT", "PASSWORD": "SASL_PLAINTEXT"},
    ) as cluster:
        yield cluster


def let(cluster: KafkaCluster, topic: str, *operations: str, deny: bool = False) -> None:
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    acls = [
        AclBinding(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, ALICE, "*", AclOperation[operation], permission
        )
        for operation in operations
    ]
    client = admin(cluster)
    for future in client.create_acls(acls).values():
        future.result(30)


def flow_of_alice(folder: Path, source: KafkaCluster, target: KafkaCluster, topics: str) -> Flow:
    settings: Mapping[str, str] = {
        "A.bootstrap.servers": source.bootstrap_servers_of("PASSWORD"),
        "A.security.protocol": "SASL_PLAINTEXT",
        "A.sasl.mechanism": "PLAIN",
        "A.sasl.jaas.config": f'{_MODULE} required username="alice" password="wonderland";',
        # Alice creates nothing on the source.
        "A->B.offset-syncs.topic.location": "target",
        "heartbeats.replication.enabled": "false",
    }
    return pair_flow(folder, KafkaPair(source, target), topics=topics, settings=settings)


def test_a_topic_whose_configs_and_records_are_denied_stops_no_other(
    guarded_source: KafkaCluster, mirrored: MirroredTopic
) -> None:
    open_, closed = f"{mirrored.name}-open", f"{mirrored.name}-closed"
    for topic in (open_, closed):
        create_topic(guarded_source, topic)
        create_topic(mirrored.target, f"A.{topic}", configs={"max.message.bytes": "55555"})
        produce(guarded_source, topic, records(20))
        let(guarded_source, topic, "READ", "DESCRIBE", "DESCRIBE_CONFIGS")
    let(guarded_source, closed, "READ", "DESCRIBE_CONFIGS", deny=True)
    flow = flow_of_alice(mirrored.folder, guarded_source, mirrored.target, f"{mirrored.name}.*")

    configs = apply_flow_configs(flow.config, flow_topology(flow.config))
    copied = flow.run()

    assert [change.source for change in configs.plan.changes] == [open_]
    assert [(error.reason, error.where.topic) for error in configs.errors] == [("authorization", closed)]
    assert configs.exit_code == 3
    assert [(error.reason, error.where.topic) for error in copied.errors] == [("authorization", closed)]
    assert values(consume(mirrored.target, f"A.{open_}")) == values(consume(guarded_source, open_))
    # The step of a scheduled run fails with the same reason, and leaves it for the report.
    pushed: dict[str, Any] = {}
    instance = SimpleNamespace(
        try_number=1, xcom_push=lambda key, value: pushed.update({key: value}), xcom_pull=lambda **_: None
    )
    dag_run = SimpleNamespace(dag_id="mirror__A__B", run_id="scheduled 1")
    with pytest.raises(AirflowFailException, match=closed):
        sync_tasks.sync_topic_configs("A->B", str(flow.path), NO_CHOICE, ti=instance, dag_run=dag_run)
    assert pushed[STEP_KEY]["failed"] == 1
