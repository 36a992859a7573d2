"""Heartbeats of a flow with nothing else to copy: emitted, copied and checked by the first task of its DAG."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.heartbeats.tasks import EMITTED_KEY
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.sync.heartbeats.flow import emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows
from mirror_lib.sync.topics.flow import plan_flow_topics
from tests.support.airflow.preflights import other_tasks, run_preflight
from tests.support.clusters import Chain
from tests.support.flows import Flow, make_flow
from tests.support.kafka import Record, consume, create_topic, produce


@pytest.fixture
def flow(chain: Chain, topic_name: str, tmp_path: Path) -> Flow:
    settings = {
        "emit.heartbeats.enabled": "true",
        "heartbeats.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
    }
    servers = chain.first.bootstrap_servers, chain.second.bootstrap_servers
    return make_flow(tmp_path, *servers, topics=topic_name, settings=settings)


def test_heartbeats_are_written_before_a_copy_by_spark_too(chain: Chain, flow: Flow, topic_name: str) -> None:
    create_topic(chain.first, topic_name)
    assert flow.run().errors == ()
    produce(chain.first, topic_name, [Record(value=b"new")])
    before = len(consume(chain.first, "heartbeats"))

    ran = run_preflight(flow.path)

    assert "emit_heartbeats" in ran.skipped
    assert "replicate" not in ran.skipped
    written = consume(chain.first, "heartbeats")[before:]
    assert [Heartbeat.decode(each.key, each.value).source for each in written] == ["B"]
    assert ran.pushed[EMITTED_KEY]["problems"] == []


def test_a_topic_that_the_first_heartbeat_creates_gets_its_copy(chain: Chain, flow: Flow, topic_name: str) -> None:
    create_topic(chain.first, topic_name)
    assert flow.run().errors == ()
    planned = plan_flow_topics(flow.config, flow_topology(flow.config))
    assert planned.plan.changes == 0

    ran = run_preflight(flow.path)

    assert consume(chain.first, "heartbeats")
    assert "sync_topics" not in ran.skipped


def test_heartbeats_are_copied_and_checked_by_the_first_task(chain: Chain, flow: Flow) -> None:
    emit_heartbeats(emitting_flows(load(flow.path), flow.config.flow))
    # Spark makes the first copy.
    assert flow.run().errors == ()

    ran = [run_preflight(flow.path) for _ in range(2)]

    for each in ran:
        assert each.skipped == other_tasks(flow.path)
        assert each.pushed[REPORT_KEY]["records"] == 1
        assert each.pushed[STEP_KEY]["heartbeats"]["reasons"] == {"fresh": 1}
    source, copies = consume(chain.first, "heartbeats"), consume(chain.second, "A.heartbeats")
    assert [Heartbeat.decode(each.key, each.value) for each in copies] == [
        Heartbeat.decode(each.key, each.value) for each in source
    ]
    assert [(run.state, run.records) for run in flow.ledger.runs("A->B", 2)] == [("succeeded", 1)] * 2
    assert flow.ledger.pages.newest_observations(["A->B"])["A->B"].lagging == 0
    assert {row.verdict for row in flow.ledger.observations.heartbeats("A->B")} == {"fresh"}
