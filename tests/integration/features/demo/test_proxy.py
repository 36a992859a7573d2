"""The fault proxy in front of a real broker, used by a real client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import FAST_HOUSEKEEPING
from tests.support.kafka import consume, create_topic
from tools.testbed.proxy import KafkaProxy

LISTENER = "PROXY"


@pytest.fixture(scope="module")
def cluster(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(
        "proxied",
        directory=brokers_folder / "proxied",
        jars=kafka_jars,
        overrides=FAST_HOUSEKEEPING,
        listeners={"PLAINTEXT": "PLAINTEXT", LISTENER: "PLAINTEXT"},
        proxied=[LISTENER],
    ) as cluster:
        yield cluster


@pytest.fixture
def proxy(cluster: KafkaCluster) -> Iterator[KafkaProxy]:
    with KafkaProxy.in_front_of(cluster, LISTENER) as proxy:
        yield proxy


def producer(cluster: KafkaCluster, **settings: Any) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers_of(LISTENER),
            "linger.ms": 0,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def send(client: Producer, topic: str, value: bytes) -> KafkaError | None:
    """Write one record; returns why it was not acknowledged."""
    answers: list[KafkaError | None] = []
    client.produce(topic, value=value, partition=0, on_delivery=lambda error, _: answers.append(error))
    client.flush(60)
    assert len(answers) == 1
    return answers[0]


def values(cluster: KafkaCluster, topic: str) -> list[bytes | None]:
    """What stands on the log, read beside the proxy."""
    return [record.value for record in consume(cluster, topic)]


def test_given_a_proxied_listener_when_a_client_uses_it_then_all_its_traffic_goes_through_the_proxy(
    cluster: KafkaCluster, proxy: KafkaProxy, topic_name: str
) -> None:
    create_topic(cluster, topic_name)
    client = producer(cluster)

    assert send(client, topic_name, b"one") is None
    assert proxy.connections() >= 1
    proxy.refuse()
    proxy.cut()

    # A client that knew another address would still be answered.
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
    proxy.accept()
    assert send(client, topic_name, b"two") is None
    assert values(cluster, topic_name) == [b"one", b"two"]


def test_given_latency_then_an_acknowledgement_takes_at_least_that_long(
    cluster: KafkaCluster, proxy: KafkaProxy, topic_name: str
) -> None:
    create_topic(cluster, topic_name)
    client = producer(cluster)
    assert send(client, topic_name, b"before") is None

    proxy.latency(400)
    began = time.monotonic()
    assert send(client, topic_name, b"late") is None

    assert time.monotonic() - began >= 0.4


def test_given_a_swallowed_answer_then_the_record_is_on_the_log_although_its_writer_saw_a_lost_connection(
    cluster: KafkaCluster, proxy: KafkaProxy, topic_name: str
) -> None:
    create_topic(cluster, topic_name)
    client = producer(cluster, enable_idempotence=False, retries=0)
    assert send(client, topic_name, b"before") is None

    happened = proxy.swallow_next_answer()
    # Only answers to Produce requests count.
    assert client.list_topics(timeout=10).topics
    assert not happened.is_set()
    error = send(client, topic_name, b"lost acknowledgement")

    assert error is not None
    assert happened.is_set()
    assert values(cluster, topic_name) == [b"before", b"lost acknowledgement"]


def test_given_a_stall_then_requests_wait_and_are_answered_after_it(
    cluster: KafkaCluster, proxy: KafkaProxy, topic_name: str
) -> None:
    create_topic(cluster, topic_name)
    client = producer(cluster)
    assert send(client, topic_name, b"before") is None
    answers: list[KafkaError | None] = []

    proxy.stall()
    client.produce(topic_name, value=b"stalled", partition=0, on_delivery=lambda error, _: answers.append(error))
    assert client.flush(0.5) == 1
    assert values(cluster, topic_name) == [b"before"]
    proxy.resume()

    assert client.flush(60) == 0
    assert answers == [None]
    assert values(cluster, topic_name) == [b"before", b"stalled"]
