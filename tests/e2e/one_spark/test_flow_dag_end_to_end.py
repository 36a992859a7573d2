"""The flow's DAGs by their forms: real Airflow tasks, drivers on a Spark that waits for them, real brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.features.demo.driver_host import DriverHost
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE
from mirror_lib.spark.connect_server import ConnectAddress
from tests.support.airflow.dags import DagHost, DagOutcome
from tests.support.clusters import KafkaPair
from tests.support.flow_files import flow_between
from tests.support.kafka import Record, consume, create_topic, produce, records, topic_names
from tests.support.names import unique_name

pytestmark = pytest.mark.timeout(900)

DAG_ID = "mirror__east__west"
BACKFILL_DAG_ID = "mirror_backfill__east__west"
VERIFY_DAG_ID = "mirror_verify__east__west"
PARTITIONS = 3


@pytest.fixture(scope="module")
def prefix() -> str:
    return unique_name("shop")


@pytest.fixture(scope="module")
def topics(kafka_pair: KafkaPair, prefix: str) -> tuple[str, ...]:
    names = tuple(f"{prefix}-{number}" for number in range(2))
    for name in names:
        create_topic(kafka_pair.source, name, partitions=PARTITIONS)
    write(kafka_pair, names, 400, start=0)
    return names


@pytest.fixture(scope="module")
def host(
    server: ConnectAddress,
    drivers: DriverHost,
    kafka_pair: KafkaPair,
    prefix: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DagHost]:
    folder: Path = tmp_path_factory.mktemp("dags")
    config = folder / "mirror.properties"
    own = ("tasks.max = 2", "mirror.spark.connection = warm_spark")
    config.write_text(flow_between(kafka_pair, "east->west", f"{prefix}.*", prefix, *own))
    host = DagHost(folder, config)
    warm = {"conn_type": "spark_connect", "host": server.host, "port": server.port}
    host.environment |= {"AIRFLOW_CONN_WARM_SPARK": json.dumps(warm), DRIVER_HOST_VARIABLE: str(drivers.socket)}
    with host as running:
        yield running


def write(pair: KafkaPair, names: tuple[str, ...], count: int, *, start: int) -> None:
    for name in names:
        for partition in range(PARTITIONS):
            produce(pair.source, name, records(count + partition, size=300, partition=partition, start=start))


@dataclass(frozen=True, slots=True)
class Ran:
    """A run, and what both sides held after it."""

    outcome: DagOutcome
    #: Topic of the source -> records there, and of its copy.
    source: Mapping[str, list[Record]]
    copies: Mapping[str, list[Record]]
    #: Names of topics on the target.
    target_topics: set[str]


@dataclass(frozen=True, slots=True)
class Story:
    """All runs in the order of the fields."""

    topics: tuple[str, ...]
    import_errors: Mapping[str, str]
    topics_before: set[str]
    dry: Ran
    first: Ran
    backfill: tuple[DagOutcome, ...]
    backfilled_by_the_first: int
    backfilled: list[Record]
    verification: DagOutcome
    #: After a record of another program had come to a copy.
    verification_of_a_difference: DagOutcome
    log: str


@pytest.fixture(scope="module")
def story(host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]) -> Story:
    """Everything in one go: starting Airflow costs more than all that is tested."""

    def run(choices: dict[str, Any] | None = None) -> Ran:
        outcome = host.run(DAG_ID, choices)
        there = topic_names(kafka_pair.target)
        copied = [name for name in topics if f"east.{name}" in there]
        return Ran(
            outcome,
            {name: consume(kafka_pair.source, name) for name in copied},
            {name: consume(kafka_pair.target, f"east.{name}") for name in copied},
            there,
        )

    import_errors, topics_before = host.import_errors(), topic_names(kafka_pair.target)
    dry, first = run({"dry_run": True}), run()
    choices = {"topics": [topics[0]], "name": "old", "from": "earliest", "to": "latest", "target_name": ".old"}
    first_part = host.run(BACKFILL_DAG_ID, {**choices, "max_bytes": 100_000})
    backfilled_by_the_first = len(consume(kafka_pair.target, f"east.{topics[0]}.old"))
    last_part, again = (host.run(BACKFILL_DAG_ID, {"name": "old"}) for _ in range(2))
    verification = host.run(VERIFY_DAG_ID)
    produce(kafka_pair.target, f"east.{topics[0]}", [Record(value=b"of another program")])
    return Story(
        topics,
        import_errors,
        topics_before,
        dry,
        first,
        (first_part, last_part, again),
        backfilled_by_the_first,
        consume(kafka_pair.target, f"east.{topics[0]}.old"),
        verification,
        host.run(VERIFY_DAG_ID, {"mode": "full", "topics": [topics[0]]}),
        host.log.read_text(errors="replace"),
    )


def copied_as_reported(ran: Ran, host: DagHost) -> int:
    """How many records a run says it has copied, when nothing went wrong."""
    assert_done(ran.outcome, host)
    assert ran.outcome.report is not None
    return ran.outcome.report["records"]


def assert_done(outcome: DagOutcome, host: DagHost) -> None:
    # Steps that have nothing to do say so by being skipped.
    assert set(outcome.tasks.values()) <= {"success", "skipped"}, f"{outcome}\n{host.log_tail()}"
    assert outcome.state == "success"


def test_a_dry_run_changes_nothing_on_the_target(story: Story, host: DagHost) -> None:
    assert story.import_errors == {}
    assert_done(story.dry.outcome, host)
    assert story.dry.outcome.report is not None
    assert story.dry.outcome.report["dry_run"] is True
    assert story.dry.target_topics == story.topics_before


def test_the_first_run_copies_every_record_as_it_is(story: Story, host: DagHost) -> None:
    assert copied_as_reported(story.first, host) == len(story.topics) * (3 * 400 + 0 + 1 + 2)
    assert tuple(story.first.source) == story.topics
    assert story.first.copies == story.first.source


def test_drivers_get_their_spark_by_the_connection_of_the_flow(story: Story, server: ConnectAddress) -> None:
    assert f"session of the Spark Connect server {server}" in story.log
    assert "The driver host runs the driver" in story.log
    assert "spark-submit" not in story.log


def test_a_dag_of_its_own_backfills_in_parts_and_copies_nothing_twice(story: Story, host: DagHost) -> None:
    source = story.first.source[story.topics[0]]

    for outcome in story.backfill:
        assert_done(outcome, host)
    assert 0 < story.backfilled_by_the_first < len(source)
    assert story.backfilled == source


def test_a_dag_of_its_own_verifies_the_copy_and_fails_at_once_when_it_differs(story: Story, host: DagHost) -> None:
    topics, different = story.topics, story.verification_of_a_difference

    assert_done(story.verification, host)
    assert (different.state, different.tasks) == ("failed", {"verify": "failed"}), host.log_tail()
    equal = f"EQUAL: {len(topics) * (3 * 400 + 3):,} records in {len(topics) * PARTITIONS} partitions."
    assert equal in story.log
    assert f"{topics[0]}-0: extra at target offset" in story.log
    assert "of another program" not in story.log
