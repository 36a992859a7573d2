"""A target that cannot make the topics of its own coordinators: told before the copy, with the settings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.airflow.flow import check
from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import BrokerUnreachableError, TopicNotCreatableError
from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import FAST_HOUSEKEEPING
from tests.support.flows import make_flow
from tests.support.kafka import records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.names import unique_name


@pytest.fixture(scope="module")
def lone_broker(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaCluster]:
    """One broker with Kafka's defaults for the topics of coordinators: three replicas, two of them in sync."""
    defaults = {
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "offsets.topic.replication.factor": "3",
    }
    with KafkaCluster(
        "lone",
        directory=brokers_folder / unique_name("lone"),
        jars=kafka_jars,
        overrides={**FAST_HOUSEKEEPING, **defaults},
    ) as cluster:
        yield cluster


def test_topics_of_coordinators_that_cannot_be_made_are_told_before_the_copy_with_all_others(
    mirrored: MirroredTopic, lone_broker: KafkaCluster
) -> None:
    mirrored.create(records(10))
    servers = mirrored.source.bootstrap_servers, lone_broker.bootstrap_servers
    settings = {
        "B.offset.storage.replication.factor": "2",
        "A->B.sync.group.offsets.enabled": "true",
        "A->B.replication.factor": "2",
    }
    flow = make_flow(mirrored.folder, *servers, topics=mirrored.name, settings=settings)

    for ask in (flow.sync_topics, lambda: check.check_flow(JobArguments(flow.path, "A->B"))):
        with pytest.raises(TopicNotCreatableError) as refused:
            ask()
        for setting in (
            "transaction.state.log.replication.factor",
            "mirror.fencing=none",
            "offsets.topic.replication.factor",
            "B.offset.storage.replication.factor",
            "checkpoints.topic.replication.factor",
            "A->B.replication.factor",
        ):
            assert setting in str(refused.value)
    assert any("transaction.state.log" in each for each in plan_flow(flow.config, RunOptions(), flow.ledger).warnings)


def test_a_flow_without_transactional_ids_copies_to_such_a_target(
    mirrored: MirroredTopic, lone_broker: KafkaCluster
) -> None:
    mirrored.create(records(10))
    servers = mirrored.source.bootstrap_servers, lone_broker.bootstrap_servers
    flow = make_flow(mirrored.folder, *servers, topics=mirrored.name, settings={"mirror.fencing": "none"})

    assert flow.run().records == 10


def test_a_coordinator_that_cannot_be_found_names_its_topic_and_no_bootstrap_servers(lone_broker: KafkaCluster) -> None:
    async def take_over() -> None:
        async with open_clients(Connection("B", tuple(lone_broker.bootstrap_servers.split(",")))) as (client,):
            await client.producers.init_producer_id("tests-none", deadline=time.monotonic())

    with pytest.raises(BrokerUnreachableError) as failed:
        asyncio.run(take_over())

    assert "transaction.state.log.replication.factor" in failed.value.action
    assert "bootstrap.servers" not in failed.value.action


def test_the_preflight_opens_one_connection_for_administration_to_each_cluster(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.create(records(10))
    flow = mirrored.flow()
    opened: list[str] = []
    enter = ClusterAdmin.__enter__

    def counted(admin: ClusterAdmin) -> ClusterAdmin:
        opened.append(admin.cluster)
        return enter(admin)

    monkeypatch.setattr(ClusterAdmin, "__enter__", counted)

    assert check.check_flow(JobArguments(flow.path, "A->B")).selected_topics == 1

    assert sorted(opened) == ["A", "B"]
