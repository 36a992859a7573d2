"""Targets that refuse configs of topics, as managed services document it, played by real brokers with such a policy.

MSK Serverless takes a handful of configs and no `segment.bytes`; Confluent Cloud limits values, such as
`max.message.bytes`; neither says by a code which config it means.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.demo.broker import FAST_START_JVM, KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from mirror_lib.sync.acls.flow import sync_flow_acls
from mirror_lib.sync.configs.flow import apply_flow_configs, sync_flow_configs
from mirror_lib.sync.topics.flow import plan_flow_topics, sync_flow_topics
from mirror_lib.sync.topics.internal import InternalTopicState
from tests.support.airflow.preflights import run_preflight
from tests.support.brokers.hidden_requests import hiding
from tests.support.brokers.java_classes import jars_with
from tests.support.clusters import KafkaPair, start_together
from tests.support.flows import Flow, make_flow
from tests.support.kafka import consume, create_topic, own_configs, produce, records, set_config

JAVA = Path(__file__).parents[2] / "support" / "brokers" / "ManagedService.java"
#: Of MSK Serverless, and a limit like Confluent Cloud's.
ALLOWED = "cleanup.policy,retention.ms,retention.bytes,max.message.bytes<=2097164"
OWN = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "max.message.bytes": "3000000",
    "retention.ms": "9000000",
}


@pytest.fixture(scope="module")
def managed(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaPair]:
    """A source with an authorizer, and a target with a policy and without one."""
    folder = brokers_folder / "managed"
    listeners: dict[str, Any] = {
        "listeners": {"PLAINTEXT": "PLAINTEXT", "FEWER": "PLAINTEXT"},
        "proxied": ["FEWER"],
    }
    source = KafkaCluster("own", directory=folder / "own", jars=kafka_jars, overrides=WITH_ACLS, **listeners)
    target = KafkaCluster(
        "managed",
        directory=folder / "service",
        jars=jars_with(kafka_jars, folder / "java", JAVA),
        overrides={
            "create.topic.policy.class.name": "ManagedService",
            "alter.config.policy.class.name": "ManagedService",
        },
        **listeners,
        jvm_flags=(*FAST_START_JVM, f"-Dtests.allowed={ALLOWED}"),
    )
    with start_together(source, target):
        yield KafkaPair(source, target)


def a_flow(
    folder: Path, pair: KafkaPair, topic: str, *, servers: tuple[str, str] | None = None, **settings: str
) -> Flow:
    own = {
        "A->B.heartbeats.replication.enabled": "false",
        "A->B.checkpoints.topic.replication.factor": "1",
        "B.offset.storage.topic": f"{topic}-positions",
        **{f"A->B.{name.replace('_', '.')}": value for name, value in settings.items()},
    }
    source, target = servers or (pair.source.bootstrap_servers, pair.target.bootstrap_servers)
    return make_flow(folder, source, target, topics=f"{topic}.*", settings=own)


def test_given_configs_that_the_target_refuses_then_topics_are_made_without_them_and_records_arrive(
    managed: KafkaPair, topic_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given three topics, of which two have configs that the target does not take,
    for number in range(2):
        create_topic(managed.source, f"{topic_name}-{number}", configs=OWN)
    create_topic(managed.source, f"{topic_name}-plain", configs={"retention.ms": "8000000"})
    produce(managed.source, f"{topic_name}-0", records(20))
    flow = a_flow(tmp_path, managed, topic_name)

    # when the flow looks, and then runs,
    planned = plan_flow_topics(flow.config, flow_topology(flow.config))
    with caplog.at_level(logging.WARNING):
        run_preflight(flow.path)
    report = flow.run()

    # then the plan has said it, each config once, and nothing failed.
    positions, segments, message_bytes = sorted(planned.notices, key=lambda text: "-positions" not in text)
    assert f"rejects the topic config segment.bytes; topics without it: {topic_name}-positions" in positions
    both = f"topics without it: A.{topic_name}-0, A.{topic_name}-1"
    assert {f"rejects the topic config {name}; {both}" for name in ("max.message.bytes", "segment.bytes")} == {
        text[text.index("rejects") : text.index(" (")] for text in (segments, message_bytes)
    }
    assert "mirror.configs.never = segment.bytes" in positions
    assert planned.internal[0].state is InternalTopicState.MISSING
    assert set(planned.notices) <= {text.removeprefix("Flow A->B: ") for text in caplog.messages}
    assert report.errors == ()
    assert len(consume(managed.target, f"A.{topic_name}-0")) == 20
    kept = {"cleanup.policy": "compact", "retention.ms": "9000000"}
    assert own_configs(managed.target, f"A.{topic_name}-0") == kept
    assert own_configs(managed.target, f"A.{topic_name}-1") == kept
    assert own_configs(managed.target, f"A.{topic_name}-plain") == {"retention.ms": "8000000"}
    assert own_configs(managed.target, f"{topic_name}-positions") == {"cleanup.policy": "compact"}
    # And nothing is to be created again.
    assert sync_flow_topics(flow.config, flow_topology(flow.config), dry_run=False)["notices"] == []


def test_given_configs_that_the_target_refuses_then_the_others_follow_the_source_and_it_is_said_once(
    managed: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(managed.source, topic_name, configs=OWN)
    flow = a_flow(tmp_path, managed, topic_name)
    flow.sync_topics()
    set_config(managed.source, topic_name, "retention.ms", "5000000")

    done = sync_flow_configs(flow.config, flow_topology(flow.config), flow.ledger, dry_run=False)

    assert own_configs(managed.target, f"A.{topic_name}") == {"cleanup.policy": "compact", "retention.ms": "5000000"}
    assert (done["failed"], done["problems"]) == (0, [])
    assert [text.split(";")[0] for text in done["notices"]] == [
        "cluster B rejects the topic config max.message.bytes",
        "cluster B rejects the topic config segment.bytes",
    ]
    # The step was done in full: it is not due again before its interval is over.
    again = sync_flow_configs(flow.config, flow_topology(flow.config), flow.ledger, dry_run=False)
    assert again["skipped"] is not None
    shown = CliRunner().invoke(app, ["configs", "apply", "--config", str(flow.path), "--flow", "A->B"])
    assert shown.exit_code == 0
    assert shown.output.count("rejects the topic config segment.bytes") == 1


def test_given_a_config_that_the_file_sets_then_its_refusal_stays_an_error_that_names_the_way_out(
    managed: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(managed.source, topic_name)
    flow = a_flow(tmp_path, managed, topic_name, mirror_configs_override="segment.bytes=2000000")

    (refused,) = flow.sync_topics().failures

    assert refused.error is not None
    assert "mirror.configs.never" in refused.error.action
    create_topic(managed.target, f"A.{topic_name}")
    changed = apply_flow_configs(flow.config, flow_topology(flow.config))
    assert [change.topic for change, _ in changed.failed] == [f"A.{topic_name}"]
    assert changed.notices == ()


def test_given_a_position_topic_made_by_hand_then_it_is_taken_as_it_is(
    managed: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(managed.source, topic_name)
    produce(managed.source, topic_name, records(5))
    by_hand = {"cleanup.policy": "compact", "retention.ms": "1000000"}
    create_topic(managed.target, f"{topic_name}-positions", partitions=3, configs=by_hand)
    flow = a_flow(tmp_path, managed, topic_name)

    assert flow.run().errors == ()
    assert flow.run().errors == ()

    assert len(consume(managed.target, f"A.{topic_name}")) == 5
    assert own_configs(managed.target, f"{topic_name}-positions") == by_hand


def test_given_requests_that_the_target_does_not_offer_then_the_run_does_without_them_and_says_so(
    managed: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # Given a target without DescribeAcls and IncrementalAlterConfigs, and neither cluster with DescribeLogDirs,
    create_topic(managed.source, topic_name, configs={"retention.ms": "9000000"})
    produce(managed.source, topic_name, records(5))
    with hiding(managed.source, "FEWER", (35,)) as source, hiding(managed.target, "FEWER", (29, 35, 44)) as target:
        flow = a_flow(tmp_path, managed, topic_name, servers=(source, target))
        assert flow.run().errors == ()
        set_config(managed.source, topic_name, "retention.ms", "5000000")
        arguments = flow.config, flow_topology(flow.config), flow.ledger

        configs = sync_flow_configs(*arguments, dry_run=False)
        acls = sync_flow_acls(*arguments, dry_run=False, by="tests")

    assert (configs["failed"], configs["notices"]) == (
        0,
        ["cluster B does not support changes of topic configs: 1 topic keeps its configs."],
    )
    assert (acls["failed"], acls["skipped"]) == (
        0,
        "Cluster B does not list its ACLs: none are synchronized from A to B.",
    )
    assert len(consume(managed.target, f"A.{topic_name}")) == 5
    assert own_configs(managed.target, f"A.{topic_name}")["retention.ms"] == "9000000"


@pytest.mark.parametrize(
    ("key", "name", "setting"),
    [(10, "FindCoordinator", "mirror.fencing=none"), (22, "InitProducerId", "this API is required")],
)
def test_given_a_target_without_an_api_for_transactions_then_the_run_names_it_and_the_setting(
    managed: KafkaPair, topic_name: str, tmp_path: Path, key: int, name: str, setting: str
) -> None:
    create_topic(managed.source, topic_name)
    produce(managed.source, topic_name, records(5))
    with hiding(managed.target, "FEWER", (key,)) as target:
        flow = a_flow(tmp_path, managed, topic_name, servers=(managed.source.bootstrap_servers, target))
        (error,) = flow.run().errors

    assert error.reason == "unsupported"
    assert f"does not support {name} (API key {key})" in str(error)
    assert setting in str(error)


def test_given_a_target_without_coordinators_then_the_setting_in_the_error_does_without_them(
    managed: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(managed.source, topic_name)
    produce(managed.source, topic_name, records(5))
    with hiding(managed.target, "FEWER", (10,)) as target:
        servers = managed.source.bootstrap_servers, target
        report = a_flow(tmp_path, managed, topic_name, servers=servers, mirror_fencing="none").run()

    assert report.errors == ()
    assert len(consume(managed.target, f"A.{topic_name}")) == 5
