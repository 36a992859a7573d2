"""The flow's DAG as users run it: real Airflow tasks, real Spark, real brokers.

The tests build on each other, in order: starting Spark and Airflow costs more than all that is tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.clusters import KafkaPair
from tests.support.dags import DagHost, DagOutcome
from tests.support.kafka import Record, admin, consume, create_topic, produce, records
from tests.support.names import unique_name

DAG_ID = "mirror__east__west"
BACKFILL_DAG_ID = "mirror_backfill__east__west"
VERIFY_DAG_ID = "mirror_verify__east__west"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
_CONFIG = """\
clusters = east, west
east.bootstrap.servers = {source}
west.bootstrap.servers = {target}
east->west.enabled = true
east->west.topics = {prefix}.*
west->east.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.topic = mm2-offsets.{prefix}.internal
tasks.max = 2
"""


@pytest.fixture(scope="module")
def prefix() -> str:
    return unique_name("shop")


@pytest.fixture(scope="module")
def topics(kafka_pair: KafkaPair, prefix: str) -> tuple[str, ...]:
    """A topic for each codec, with keys, headers and old timestamps."""
    names = tuple(f"{prefix}-{codec}" for codec in CODECS)
    for name in names:
        create_topic(kafka_pair.source, name, partitions=PARTITIONS)
    write(kafka_pair, names, 400, start=0)
    return names


@pytest.fixture(scope="module")
def host(kafka_pair: KafkaPair, prefix: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagHost]:
    folder: Path = tmp_path_factory.mktemp("dags")
    config = folder / "mirror.properties"
    config.write_text(
        _CONFIG.format(
            source=kafka_pair.source.bootstrap_servers, target=kafka_pair.target.bootstrap_servers, prefix=prefix
        )
    )
    with DagHost(folder, config) as running:
        yield running


def write(pair: KafkaPair, names: tuple[str, ...], count: int, *, start: int) -> None:
    for name in names:
        for partition in range(PARTITIONS):
            batch = records(count + partition, size=300, partition=partition, start=start)
            # A tombstone and a record without a key are records, too.
            batch[1] = replace(batch[1], value=None)
            batch[2] = replace(batch[2], key=None)
            produce(pair.source, name, batch, compression_type=name.rpartition("-")[2])


def contents(found: list[Record]) -> dict[int, list[Record]]:
    """Partition -> records in their order, without the offset."""
    by_partition: dict[int, list[Record]] = defaultdict(list)
    for record in found:
        by_partition[record.partition].append(replace(record, offset=None))
    return by_partition


def topics_of(pair: KafkaPair) -> set[str]:
    """The target's topics but Kafka's own, which brokers make when the first client looks for a coordinator."""
    return {name for name in admin(pair.target).list_topics(timeout=10).topics if not name.startswith("__")}


def assert_equal_copies(pair: KafkaPair, names: tuple[str, ...]) -> None:
    for name in names:
        assert contents(consume(pair.target, f"east.{name}")) == contents(consume(pair.source, name)), name


def assert_done(outcome: DagOutcome, host: DagHost) -> None:
    # Steps that have nothing to do say so by being skipped.
    assert set(outcome.tasks.values()) <= {"success", "skipped"}, f"{outcome}\n{host.log_tail()}"
    assert outcome.state == "success"


@pytest.mark.timeout(600)
def test_a_dry_run_changes_nothing_on_the_target(host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]) -> None:
    assert host.import_errors() == {}
    before = topics_of(kafka_pair)
    outcome = host.run(DAG_ID, {"dry_run": True})
    assert_done(outcome, host)
    assert outcome.report is not None
    assert outcome.report["dry_run"] is True
    assert topics_of(kafka_pair) == before


@pytest.mark.timeout(600)
def test_the_first_run_copies_every_record_as_it_is(
    host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]
) -> None:
    outcome = host.run(DAG_ID)
    assert_done(outcome, host)
    assert outcome.report is not None
    assert outcome.report["records"] == len(topics) * (3 * 400 + 0 + 1 + 2)
    assert_equal_copies(kafka_pair, topics)


@pytest.mark.timeout(600)
def test_a_second_run_has_nothing_to_copy(host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]) -> None:
    outcome = host.run(DAG_ID)
    assert_done(outcome, host)
    assert outcome.report is not None
    assert outcome.report["records"] == 0
    assert_equal_copies(kafka_pair, topics)


@pytest.mark.timeout(600)
def test_a_narrowed_run_copies_only_what_was_asked_for(
    host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]
) -> None:
    write(kafka_pair, topics, 50, start=1000)
    outcome = host.run(DAG_ID, {"topics": [topics[0]]})
    assert_done(outcome, host)
    assert outcome.report is not None
    assert outcome.report["records"] == 3 * 50 + 0 + 1 + 2
    assert_equal_copies(kafka_pair, topics[:1])


@pytest.mark.timeout(600)
def test_the_next_run_copies_just_the_rest(host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]) -> None:
    outcome = host.run(DAG_ID)
    assert_done(outcome, host)
    assert outcome.report is not None
    assert outcome.report["records"] == (len(topics) - 1) * (3 * 50 + 0 + 1 + 2)
    assert_equal_copies(kafka_pair, topics)


@pytest.mark.timeout(600)
def test_a_dag_of_its_own_backfills_in_parts_and_copies_nothing_twice(
    host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]
) -> None:
    name = topics[0]
    choices = {"topics": [name], "name": "old", "from": "earliest", "to": "latest", "target_name": ".old"}

    first = host.run(BACKFILL_DAG_ID, {**choices, "max_bytes": 100_000})
    copied = len(consume(kafka_pair.target, f"east.{name}.old"))
    rest = host.run(BACKFILL_DAG_ID, {"name": "old"})
    again = host.run(BACKFILL_DAG_ID, {"name": "old"})

    for outcome in (first, rest, again):
        assert_done(outcome, host)
    source = contents(consume(kafka_pair.source, name))
    assert 0 < copied < sum(map(len, source.values()))
    assert contents(consume(kafka_pair.target, f"east.{name}.old")) == source


@pytest.mark.timeout(600)
def test_a_dag_of_its_own_verifies_the_copy_and_fails_at_once_when_it_differs(
    host: DagHost, kafka_pair: KafkaPair, topics: tuple[str, ...]
) -> None:
    equal = host.run(VERIFY_DAG_ID)
    produce(kafka_pair.target, f"east.{topics[0]}", [Record(value=b"of another program")])
    different = host.run(VERIFY_DAG_ID, {"mode": "full", "topics": [topics[0]]})

    assert_done(equal, host)
    assert (different.state, different.tasks) == ("failed", {"verify": "failed"}), host.log_tail()
    log = host.log.read_text(errors="replace")
    assert f"EQUAL: {len(topics) * (3 * 450 + 2 * 3):,} records in {len(topics) * PARTITIONS} partitions." in log
    assert f"{topics[0]}-0: extra at target offset" in log
    assert "of another program" not in log
