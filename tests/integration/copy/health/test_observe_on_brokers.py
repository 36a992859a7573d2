"""Looking at flows between real clusters: what brokers tell, and what is left in the ledger."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.timestamps import first_timestamps
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import aged, create_topic, delete_records, produce
from tests.support.mirrored_topic import MirroredTopic


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow(topics=f"{mirrored.name}.*", settings={"mirror.schedule": "5m"})


def kept(flow: Flow) -> dict[tuple[str, int], PartitionObservationRow]:
    return {(row.topic, row.partition): row for row in flow.ledger.observations.partitions("A->B")}


def test_a_flow_is_late_by_its_first_record_that_is_not_copied(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(partitions=3)
    mirrored.produce(aged(20, age=500))
    flow.run()
    late = mirrored.produce(aged(5, age=300))
    mirrored.produce(aged(7, age=60))
    mirrored.produce(aged(3, age=100, partition=1))

    seen = observe_flow(flow.config, flow.ledger, run_id="r1")

    rows = kept(flow)
    assert set(rows) == {(mirrored.name, number) for number in range(3)}
    first = rows[mirrored.name, 0]
    assert (first.position, first.log_end, first.records_behind, first.reason) == (20, 32, 12, None)
    assert first.behind_since == datetime.fromtimestamp((late[0].timestamp_ms or 0) / 1000, UTC)
    assert rows[mirrored.name, 1].records_behind == 3
    idle = rows[mirrored.name, 2]
    assert (idle.records_behind, idle.behind_since, idle.outlook) == (0, None, "ok")
    assert (seen.flow.lagging, seen.flow.records_behind, seen.flow.stalled, seen.flow.run_id) == (2, 15, 0, "r1")
    assert seen.flow.seconds_behind == pytest.approx(300, abs=60)
    assert flow.ledger.observations.newest("A->B") == seen.flow


def test_looking_forgets_what_old_runs_did_in_partitions_that_later_ones_have_copied(mirrored: MirroredTopic) -> None:
    mirrored.create()
    mirrored.produce(aged(20, age=500))
    old = mirrored.flow().run().run_id
    mirrored.produce(aged(5, age=300))
    new = mirrored.flow().run().run_id
    with closing(sqlite3.connect(mirrored.folder / "ledger.sqlite3")) as database, database:
        long_ago = (datetime.now(UTC) - timedelta(days=100)).replace(tzinfo=None).isoformat(sep=" ")
        database.execute("UPDATE run SET started_at = ? WHERE id = ?", (long_ago, old))

    for days, left in (("200", 1), ("0", 1), ("90", 0)):
        flow = mirrored.flow({"mirror.ledger.history.days": days})
        observe_flow(flow.config, flow.ledger)

        assert len(flow.ledger.partition_runs(old)) == left, days
        assert len(flow.ledger.partition_runs(new)) == 1, days


def test_lost_records_are_told_with_their_reason(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create()
    mirrored.produce(aged(10, age=500))
    flow.run()
    mirrored.produce(aged(10, age=60))
    delete_records(mirrored.source, mirrored.name, before=15)

    seen = observe_flow(flow.config, flow.ledger).flow

    row = kept(flow)[mirrored.name, 0]
    assert (row.reason, row.outlook) == ("retention-gap", "already-lost")
    assert (seen.stalled, seen.outlook) == (1, "already-lost")


def test_a_missing_target_stalls_only_if_a_run_has_not_created_it(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create()
    mirrored.produce(aged(10, age=500))
    flow.run()
    create_topic(mirrored.source, f"{mirrored.name}-new")
    produce(mirrored.source, f"{mirrored.name}-new", aged(4, age=30))

    # Twice: no run was due between these observations.
    for _ in range(2):
        seen = observe_flow(flow.config, flow.ledger).flow
        new = kept(flow)[f"{mirrored.name}-new", 0]
        assert (seen.lagging, seen.stalled, new.reason, new.records_behind) == (1, 0, None, 4)
        assert "does not exist on the target yet" in (new.detail or "")

    # A run whose topic sync has failed.
    flow.run(sync=False)
    for _ in range(2):
        seen = observe_flow(flow.config, flow.ledger).flow
        new = kept(flow)[f"{mirrored.name}-new", 0]
        assert (seen.stalled, new.reason, new.target_topic) == (1, "topic-missing", f"A.{mirrored.name}-new")


def test_large_batches_are_found_as_well_as_small_ones(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create(partitions=6)
    began = {
        TopicPartition(mirrored.name, number): mirrored.produce(aged(1, age=number, size=size, partition=number))[
            0
        ].timestamp_ms
        for number, size in enumerate((10, 300_000, 10, 300_000, 700_000))
    }
    connection = Connection.from_settings(flow.config.clients.data_consumer)

    # The last one is empty, and one does not exist.
    wanted = [*began, TopicPartition(mirrored.name, 5), TopicPartition(f"{mirrored.name}-gone", 0)]
    found = first_timestamps(connection, dict.fromkeys(wanted, 0))

    assert found == began


def test_a_cluster_that_is_away_tells_no_ages(flow: Flow) -> None:
    settings = flow.config.clients.data_consumer
    away = settings.model_copy(update={"properties": {**settings.properties, "bootstrap.servers": "127.0.0.1:9"}})

    assert first_timestamps(Connection.from_settings(away), {TopicPartition("t", 0): 0}) == {}


def test_the_command_line_looks_and_metrics_tell_what_it_saw(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.create()
    flow.sync_topics()
    mirrored.produce(aged(8, age=120))
    runner = CliRunner()

    looked = runner.invoke(app, ["observe", "--config", str(flow.path), "--flow", "A->B", "--json"])
    read = runner.invoke(app, ["metrics", "--config", str(flow.path), "--worst-partitions", "5"])
    textfile = mirrored.folder / "mirror.prom"
    written = runner.invoke(app, ["metrics", "--config", str(flow.path), "--textfile", str(textfile)])

    assert looked.exit_code == 0
    observed = json.loads(looked.stdout)["observed"]
    assert (observed["records_behind"], observed["partition_rows"][0]["topic"]) == (8, mirrored.name)
    assert 'mirror_flow_records_behind{flow="A->B"} 8.0' in read.stdout
    assert f'mirror_partition_records_behind{{flow="A->B",partition="0",topic="{mirrored.name}"}} 8.0' in read.stdout
    assert written.exit_code == 0
    assert 'mirror_flow_records_behind{flow="A->B"} 8.0' in textfile.read_text()
