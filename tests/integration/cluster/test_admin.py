"""Topics, partitions, configs and offsets of real clusters."""

from __future__ import annotations

import time

import pytest

from mirror_lib.cluster.admin.client import (
    ClusterAdmin,
    ConfigOrigin,
    OffsetFact,
    OffsetSpec,
    PartitionDescription,
    TopicSpec,
)
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.kafka_errors import RequestRefusedError, TopicExistsError
from mirror_lib.errors import BrokerUnreachableError, TopicMissingError, TransientError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.kafka import create_topic, open_transaction, produce, records
from tests.support.mirrored_topic import MirroredTopic


def administer(cluster: KafkaCluster, timeout_seconds: float = 30.0) -> ClusterAdmin:
    return ClusterAdmin(Connection("A", tuple(cluster.bootstrap_servers.split(","))), timeout_seconds)


def wait_known(admin: ClusterAdmin, topic: str, partitions: int = 1) -> None:
    """Brokers do not know of a change in the same moment as it is made."""
    deadline = time.monotonic() + 30
    while topic not in (seen := admin.describe_topics([topic])) or len(seen[topic].partitions) < partitions:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_cluster_tells_its_id_its_brokers_and_its_topics(mirrored: MirroredTopic) -> None:
    mirrored.create()
    with administer(mirrored.source) as admin:
        assert admin.cluster_id() == mirrored.source.cluster_id
        assert [(broker.id, f"{broker.host}:{broker.port}") for broker in admin.brokers()] == [
            (1, mirrored.source.bootstrap_servers)
        ]
        topics = admin.list_topics()
    assert mirrored.name in topics
    assert topics == sorted(topics)


class TestDescribing:
    def test_a_topic_has_an_id_and_partitions_in_order(self, mirrored: MirroredTopic) -> None:
        mirrored.create(partitions=12)
        with administer(mirrored.source) as admin:
            described = admin.describe_topics([mirrored.name])[mirrored.name]
        assert described.name == mirrored.name
        assert described.topic_id is not None
        # Java's Uuid: 16 bytes in URL-safe Base64 without padding.
        assert len(described.topic_id) == 22
        assert set(described.topic_id).isdisjoint("+/=")
        assert described.partitions == tuple(
            PartitionDescription(number, 1, "127.0.0.1", (1,), (1,)) for number in range(12)
        )
        assert described.replication_factor == 1

    def test_missing_topics_are_reported_beside_the_others(self, mirrored: MirroredTopic) -> None:
        mirrored.create()
        with administer(mirrored.source) as admin:
            described = admin.describe_topics([mirrored.name, "no-such-topic"])
            configs = admin.topic_configs([mirrored.name, "no-such-topic"])
        assert list(described) == list(configs) == [mirrored.name]
        for errors in (described.errors, configs.errors):
            assert list(errors) == ["no-such-topic"]
            assert isinstance(errors["no-such-topic"], TopicMissingError)
            assert errors["no-such-topic"].where.topic == "no-such-topic"

    def test_configs_tell_where_each_value_comes_from(self, mirrored: MirroredTopic) -> None:
        mirrored.create(configs={"cleanup.policy": "compact"})
        with administer(mirrored.source) as admin:
            configs = admin.topic_configs([mirrored.name])[mirrored.name]
        assert configs.value("cleanup.policy") == "compact"
        # Kafka's documented default.
        assert configs.value("max.message.bytes") == "1048588"
        assert configs.value("no.such.config") is None
        # `create_topic` sets the retention.
        assert configs.set_on_topic() == {"cleanup.policy": "compact", "retention.ms": "-1"}
        assert configs.entries["cleanup.policy"].origin is ConfigOrigin.TOPIC
        assert configs.entries["max.message.bytes"].origin is ConfigOrigin.DEFAULT
        # Set by the test cluster in server.properties; KRaft copies it into the metadata.
        assert configs.entries["min.insync.replicas"].origin in (ConfigOrigin.BROKER_FILE, ConfigOrigin.CLUSTER)


class TestOffsets:
    def test_earliest_latest_and_last_stable_differ_while_a_transaction_is_open(self, mirrored: MirroredTopic) -> None:
        mirrored.create(records(3), partitions=2)
        writer = open_transaction(mirrored.source, mirrored.name, [b"open"])
        here, empty = TopicPartition(mirrored.name, 0), TopicPartition(mirrored.name, 1)
        try:
            with administer(mirrored.source) as admin:
                found = {which: admin.list_offsets([here, empty], which) for which in OffsetSpec}
        finally:
            writer.abort_transaction(30)
        assert found[OffsetSpec.EARLIEST][here].offset == 0
        assert found[OffsetSpec.LAST_STABLE][here].offset == 3
        assert found[OffsetSpec.LATEST][here] == OffsetFact(4, leader_epoch=0)
        assert {found[which][empty].offset for which in OffsetSpec} == {0}

    def test_partitions_that_do_not_exist_have_an_error_of_their_own(self, mirrored: MirroredTopic) -> None:
        mirrored.create()
        there = TopicPartition(mirrored.name, 0)
        beyond, nowhere = TopicPartition(mirrored.name, 7), TopicPartition("no-such-topic", 0)
        with administer(mirrored.source) as admin:
            facts = admin.list_offsets([there, beyond, nowhere], OffsetSpec.LATEST)
            alone = admin.list_offsets([nowhere], OffsetSpec.LATEST)
        assert facts[there] == OffsetFact(0, leader_epoch=0)
        for partition, fact in ((beyond, facts[beyond]), (nowhere, facts[nowhere]), (nowhere, alone[nowhere])):
            assert isinstance(fact.error, TopicMissingError)
            assert (fact.error.where.topic, fact.error.where.partition) == partition
            assert fact.offset == -1

    def test_a_topic_that_is_new_since_the_last_question_is_found_at_once(self, mirrored: MirroredTopic) -> None:
        """librdkafka alone would go on to ask the partitions that it remembers."""
        first, second = TopicPartition(mirrored.name, 0), TopicPartition(mirrored.name, 1)
        with administer(mirrored.source) as admin:
            assert admin.list_offsets([first], OffsetSpec.LATEST)[first].error is not None
            mirrored.create()
            assert admin.list_offsets([first], OffsetSpec.LATEST)[first].offset == 0
            admin.create_partitions({mirrored.name: 2})
            with administer(mirrored.source) as other:
                wait_known(other, mirrored.name, partitions=2)
            assert admin.list_offsets([first, second], OffsetSpec.LATEST)[second].offset == 0


class TestCreating:
    def test_each_topic_succeeds_or_fails_by_itself(self, mirrored: MirroredTopic) -> None:
        good, copies, invalid, config = (f"{mirrored.name}-{suffix}" for suffix in ("good", "rf", "bad name", "config"))
        with administer(mirrored.target) as admin:
            outcome = admin.create_topics(
                [
                    TopicSpec(good, 3, 1, {"cleanup.policy": "compact"}),
                    TopicSpec(copies, 1, 5),
                    TopicSpec(invalid, 1, 1),
                    TopicSpec(config, 1, 1, {"no.such.config": "1"}),
                ]
            )
            again = admin.create_topics([TopicSpec(good, 3, 1)])
            wait_known(admin, good, partitions=3)
            described = admin.describe_topics([good])[good]
            configs = admin.topic_configs([good])[good]
        assert outcome[good] is None
        assert isinstance(outcome[copies], RequestRefusedError)
        assert isinstance(outcome[invalid], RequestRefusedError)
        assert isinstance(outcome[config], RequestRefusedError)
        assert isinstance(again[good], TopicExistsError)
        assert (len(described.partitions), described.replication_factor) == (3, 1)
        assert configs.value("cleanup.policy") == "compact"

    def test_validating_only_creates_nothing(self, mirrored: MirroredTopic) -> None:
        with administer(mirrored.target) as admin:
            outcome = admin.create_topics(
                [TopicSpec(mirrored.name, 1, 1), TopicSpec(f"{mirrored.name}-rf", 1, 9)], validate_only=True
            )
            assert mirrored.name not in admin.list_topics()
        assert outcome[mirrored.name] is None
        assert isinstance(outcome[f"{mirrored.name}-rf"], RequestRefusedError)

    def test_topics_grow_and_never_shrink(self, mirrored: MirroredTopic) -> None:
        create_topic(mirrored.target, mirrored.name, partitions=2)
        with administer(mirrored.target) as admin:
            assert admin.create_partitions({mirrored.name: 5}) == {mirrored.name: None}
            wait_known(admin, mirrored.name, partitions=5)
            outcome = admin.create_partitions({mirrored.name: 3, "no-such-topic": 2})
        assert isinstance(outcome[mirrored.name], RequestRefusedError)
        assert isinstance(outcome["no-such-topic"], TopicMissingError)


class TestTrouble:
    @pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:9092"])
    def test_an_unreachable_cluster_is_named(self, address: str) -> None:
        with (
            ClusterAdmin(Connection("A", (address,)), timeout_seconds=1.5) as admin,
            pytest.raises(BrokerUnreachableError) as error,
        ):
            admin.describe_topics(["orders"])
        assert error.value.where.cluster == "A"
        assert address in error.value.what
        assert "bootstrap.servers" in error.value.action

    def test_after_a_leader_died_the_new_one_is_asked(self, three_brokers: KafkaCluster, topic_name: str) -> None:
        create_topic(three_brokers, topic_name, partitions=3)
        produce(three_brokers, topic_name, records(5))
        asked = [TopicPartition(topic_name, number) for number in range(3)]
        with administer(three_brokers) as admin:
            wait_known(admin, topic_name)
            before = admin.describe_topics([topic_name])[topic_name].partitions[0].leader
            assert admin.list_offsets(asked, OffsetSpec.LATEST)[asked[0]].offset == 5
            assert before is not None
            three_brokers.stop_broker(before)
            facts = admin.list_offsets(asked, OffsetSpec.LATEST)
        assert [fact.error for fact in facts.values()] == [None, None, None]
        assert [fact.offset for fact in facts.values()] == [5, 0, 0]

    def test_a_partition_without_a_leader_fails_alone(self, three_brokers: KafkaCluster, topic_name: str) -> None:
        create_topic(three_brokers, topic_name, partitions=3, copies=1)
        asked = [TopicPartition(topic_name, number) for number in range(3)]
        with administer(three_brokers) as admin:
            wait_known(admin, topic_name)
            homes = {p.partition: p.leader for p in admin.describe_topics([topic_name])[topic_name].partitions}
            gone = homes[0]
            assert gone is not None
            three_brokers.stop_broker(gone)
            facts = admin.list_offsets(asked, OffsetSpec.LATEST)
            described = admin.describe_topics([topic_name])[topic_name]
        assert isinstance(facts[asked[0]].error, TransientError)
        for partition in asked:
            if homes[partition.partition] != gone:
                assert facts[partition] == OffsetFact(0, leader_epoch=0)
        assert described.partitions[0].leader is None

    def test_a_cluster_that_goes_away_after_the_first_answer_is_named(
        self, three_brokers: KafkaCluster, topic_name: str
    ) -> None:
        create_topic(three_brokers, topic_name, partitions=3)
        asked = [TopicPartition(topic_name, number) for number in range(3)]
        with administer(three_brokers, timeout_seconds=3) as admin:
            wait_known(admin, topic_name)
            three_brokers.kill_all()
            for ask in (
                admin.list_topics,
                lambda: admin.describe_topics([topic_name]),
                lambda: admin.list_offsets(asked, OffsetSpec.LATEST),
                lambda: admin.create_topics([TopicSpec(f"{topic_name}-2", 1, 1)]),
            ):
                with pytest.raises(BrokerUnreachableError):
                    ask()


# A KRaft controller refuses an operation that makes more than 10,000 metadata records (`QuorumController`
# `.MAX_RECORDS_PER_USER_OP`): each topic, each partition and each config is one.
_CONFIGS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.message.bytes": "1048588",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
}


def test_given_topics_with_many_configs_when_created_together_then_no_request_is_too_large_for_the_controller(
    kafka_pair: KafkaPair,
) -> None:
    specs = [TopicSpec(f"many-configs-{number}", 1, 1, _CONFIGS) for number in range(700)]

    with administer(kafka_pair.target) as client:
        outcome = client.create_topics(specs, validate_only=True)

    assert {str(error) for error in outcome.values() if error is not None} == set()
    assert len(outcome) == 700


def test_given_a_topic_with_more_partitions_than_the_controller_creates_at_once_then_the_error_does_not_blame_a_policy(
    kafka_pair: KafkaPair,
) -> None:
    with administer(kafka_pair.target) as client:
        outcome = client.create_topics(
            [TopicSpec("small", 1, 1), TopicSpec("too-many-partitions", 10_001, 1)], validate_only=True
        )

    assert outcome["small"] is None
    error = outcome["too-many-partitions"]
    assert "10,000" in error.action
    assert "policy" not in error.action
