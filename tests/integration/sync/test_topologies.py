"""Flows between three clusters in every arrangement: each record arrives where it should, once, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.features.demo.broker import KafkaCluster
from tests.integration.sync.conftest import network, run
from tests.support.clusters import Chain
from tests.support.kafka import consume, create_topic, produce, records, topic_names


def values(cluster: KafkaCluster, topic: str) -> list[bytes | None]:
    return [record.value for record in consume(cluster, topic)]


def data_topics(cluster: KafkaCluster) -> set[str]:
    """All but Kafka's and MM2's own."""
    return {name for name in topic_names(cluster) if not name.endswith(".internal")}


def write(cluster: KafkaCluster, topic: str, count: int, *, start: int = 0) -> None:
    produce(cluster, topic, records(count, start=start))


def test_active_active_with_renaming_brings_nothing_back(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->B.enabled = true", "B->A.enabled = true")
    for cluster, start in ((chain.first, 0), (chain.second, 100)):
        create_topic(cluster, "orders")
        write(cluster, "orders", 20, start=start)

    run(config, "A->B", "B->A", "A->B", "B->A")

    assert data_topics(chain.first) == {"orders", "B.orders"}
    assert data_topics(chain.second) == {"orders", "A.orders"}
    assert values(chain.second, "A.orders") == values(chain.first, "orders")
    assert values(chain.first, "B.orders") == values(chain.second, "orders")
    assert len(values(chain.first, "orders")) == len(values(chain.second, "orders")) == 20


def test_two_sources_are_aggregated_side_by_side(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->C.enabled = true", "B->C.enabled = true")
    for cluster, start in ((chain.first, 0), (chain.second, 100)):
        create_topic(cluster, "orders")
        write(cluster, "orders", 20, start=start)

    run(config, "A->C", "B->C")

    assert data_topics(chain.third) == {"A.orders", "B.orders"}
    assert values(chain.third, "A.orders") == values(chain.first, "orders")
    assert values(chain.third, "B.orders") == values(chain.second, "orders")


def test_over_two_hops_names_tell_the_way_and_a_ring_ends_where_it_began(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->B.enabled = true", "B->C.enabled = true", "C->A.enabled = true")
    create_topic(chain.first, "orders")
    write(chain.first, "orders", 20)

    run(config, "A->B", "B->C", "C->A", "A->B", "B->C", "C->A")

    assert values(chain.third, "B.A.orders") == values(chain.first, "orders")
    assert data_topics(chain.first) == {"orders"}
    assert data_topics(chain.second) == {"A.orders"}
    assert data_topics(chain.third) == {"B.A.orders"}
