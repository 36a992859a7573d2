"""Real clusters: they start, answer, and leave nothing behind."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from mirror_lib.features.demo.broker import BrokerStartError, KafkaCluster
from tests.support.kafka import admin, consume, create_topic, produce, records


def test_given_three_brokers_when_one_is_killed_then_the_others_go_on_and_it_comes_back(
    three_brokers: KafkaCluster, topic_name: str
) -> None:
    create_topic(three_brokers, topic_name, partitions=3)
    before = produce(three_brokers, topic_name, records(10))

    three_brokers.kill(2)
    during = produce(three_brokers, topic_name, records(10, start=10), acks="all")

    assert three_brokers.running_nodes == (1, 3)
    assert consume(three_brokers, topic_name) == before + during
    three_brokers.restart(2)
    assert three_brokers.running_nodes == (1, 2, 3)
    assert set(admin(three_brokers).list_topics(timeout=10).brokers) == {1, 2, 3}


def test_given_a_stopped_cluster_when_its_folder_is_opened_again_then_ports_and_data_are_the_same(
    kafka_jars: Path, cluster_folder: Path, topic_name: str
) -> None:
    with KafkaCluster("first", directory=cluster_folder, jars=kafka_jars) as first:
        create_topic(first, topic_name)
        written = produce(first, topic_name, records(3))

    with KafkaCluster("second", directory=cluster_folder, jars=kafka_jars) as second:
        assert second.bootstrap_servers == first.bootstrap_servers
        assert second.cluster_id == first.cluster_id
        assert consume(second, topic_name) == written
    assert second.running_nodes == ()


def test_given_a_property_that_kafka_refuses_when_started_then_the_error_shows_the_log_and_nothing_runs(
    kafka_jars: Path, cluster_folder: Path
) -> None:
    cluster = KafkaCluster("wrong", directory=cluster_folder, jars=kafka_jars, overrides={"num.io.threads": "0"})

    with pytest.raises(BrokerStartError, match=r"(?s)cluster wrong: .*num\.io\.threads"):
        cluster.start()

    assert cluster.running_nodes == ()


def test_given_an_interrupt_while_its_brokers_come_up_when_entered_then_nothing_runs(
    kafka_jars: Path, cluster_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = KafkaCluster("interrupted", directory=cluster_folder, jars=kafka_jars)
    launched: list[tuple[int, ...]] = []

    def interrupted(_: float) -> None:
        launched.append(cluster.running_nodes)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cluster, "wait_ready", interrupted)
    with pytest.raises(KeyboardInterrupt), cluster:
        pass

    assert launched == [(1,)]
    assert cluster.running_nodes == ()


def test_given_a_taken_port_when_started_again_then_the_cluster_moves_and_keeps_its_data(
    kafka_jars: Path, cluster_folder: Path, topic_name: str
) -> None:
    cluster = KafkaCluster("moved", directory=cluster_folder, jars=kafka_jars)
    with cluster:
        create_topic(cluster, topic_name)
        written = produce(cluster, topic_name, records(2))
    old = cluster.bootstrap_servers
    host, _, port = old.partition(":")

    with socket.create_server((host, int(port))), cluster:
        assert cluster.bootstrap_servers != old
        assert consume(cluster, topic_name) == written
