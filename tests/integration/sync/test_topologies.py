"""Flows between three clusters in every arrangement: each record arrives where it should, once, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.dev.broker import KafkaCluster
from tests.integration.sync.conftest import network, run
from tests.support.clusters import Chain
from tests.support.kafka import consume, create_topic, produce, records, topic_names

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


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


def test_active_active_without_renaming_works_where_each_topic_has_one_direction(chain: Chain, tmp_path: Path) -> None:
    config = network(
        tmp_path,
        chain,
        *("A->B.enabled = true", "A->B.topics = east.*", "B->A.enabled = true", "B->A.topics = west.*", IDENTITY),
    )
    create_topic(chain.first, "east")
    create_topic(chain.second, "west")
    write(chain.first, "east", 20)
    write(chain.second, "west", 20, start=50)

    run(config, "A->B", "B->A", "A->B", "B->A")

    assert data_topics(chain.first) == data_topics(chain.second) == {"east", "west"}
    assert values(chain.second, "east") == values(chain.first, "east")
    assert values(chain.first, "west") == values(chain.second, "west")
    assert len(values(chain.first, "east")) == len(values(chain.second, "west")) == 20


def test_two_sources_are_aggregated_side_by_side(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->C.enabled = true", "B->C.enabled = true")
    for cluster, start in ((chain.first, 0), (chain.second, 100)):
        create_topic(cluster, "orders")
        write(cluster, "orders", 20, start=start)

    run(config, "A->C", "B->C")

    assert data_topics(chain.third) == {"A.orders", "B.orders"}
    assert values(chain.third, "A.orders") == values(chain.first, "orders")
    assert values(chain.third, "B.orders") == values(chain.second, "orders")


def test_one_source_fans_out_to_two_targets_that_go_on_by_themselves(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->B.enabled = true", "A->C.enabled = true")
    create_topic(chain.first, "orders")
    write(chain.first, "orders", 20)
    run(config, "A->B", "A->C")
    write(chain.first, "orders", 10, start=20)

    run(config, "A->C")

    assert values(chain.third, "A.orders") == values(chain.first, "orders")
    assert values(chain.second, "A.orders") == values(chain.first, "orders")[:20]
    run(config, "A->B")
    assert values(chain.second, "A.orders") == values(chain.first, "orders")


def test_over_two_hops_names_tell_the_way_and_a_ring_ends_where_it_began(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->B.enabled = true", "B->C.enabled = true", "C->A.enabled = true")
    create_topic(chain.first, "orders")
    write(chain.first, "orders", 20)

    run(config, "A->B", "B->C", "C->A", "A->B", "B->C", "C->A")

    assert values(chain.third, "B.A.orders") == values(chain.first, "orders")
    assert data_topics(chain.first) == {"orders"}
    assert data_topics(chain.second) == {"A.orders"}
    assert data_topics(chain.third) == {"B.A.orders"}


def test_the_commands_refuse_a_flow_that_would_copy_in_a_circle(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, "A->B.enabled = true", "B->A.enabled = true", IDENTITY)
    create_topic(chain.first, "orders")

    for command in (["plan"], ["run", "--dry-run"]):
        result = CliRunner().invoke(app, [*command, "--config", str(config.path), "--flow", "A->B"])

        assert result.exit_code == 2, result.output
        assert "orders on A -> orders on B -> orders on A" in result.output + result.stderr
