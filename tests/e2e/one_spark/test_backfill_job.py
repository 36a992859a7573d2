"""`mirror backfill run` as users run it: the command, a driver, and tasks on a Spark Connect server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.spark.connect_server import ConnectAddress
from tests.support.clusters import KafkaPair
from tests.support.flows import copy_here, pair_flow
from tests.support.kafka import consume, create_topic, produce, records


def test_the_command_goes_on_with_a_backfill_that_is_known_by_its_name(
    server: ConnectAddress, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    create_topic(kafka_pair.source, topic_name)
    written = produce(kafka_pair.source, topic_name, records(200, size=1000), batch_size=2_000)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    request = request_of(flow.config, [topic_name], "earliest", "latest", into_suffix=".old")
    with FlowClusters.connect(flow.config) as clusters:
        prepare_backfill(flow.config, clusters, flow.ledger, request, "old")
    first = run_backfill(
        flow.config,
        "old",
        ledger=flow.ledger,
        make_runner=lambda: copy_here,
        options=RunOptions(),
        max_bytes=100_000,
    )

    words = ["backfill", "run", "--config", str(flow.path), "--flow", "A->B", "--name", "old"]
    more = ["--master", str(server), "--bytes-per-second", "1000000", "--json"]
    result = CliRunner().invoke(app, [*words, *more])

    told = json.loads(result.stdout)
    assert result.exit_code == 0, told
    assert 0 < first.records < 200
    assert told["backfill"]["offsets"] == told["run"]["records"] == 200 - first.records
    copied = consume(kafka_pair.target, f"A.{topic_name}.old")
    assert [record.value for record in copied] == [record.value for record in written]
