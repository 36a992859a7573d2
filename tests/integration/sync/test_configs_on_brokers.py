"""Topic configs carried between two real clusters: changed, deleted, refused, and few requests for many topics."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from typer import Typer
from typer.testing import CliRunner

from mirror_lib.cli.sync import configs as configs_cli
from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.sync.configs.flow import (
    ConfigSync,
    apply_configs,
    apply_flow_configs,
    plan_flow_configs,
    sync_flow_configs,
)
from tests.support.call_counts import counted
from tests.support.clusters import KafkaPair, start_together
from tests.support.flows import Flow
from tests.support.kafka import admin, create_topic, own_configs, set_config
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

app = Typer()
app.add_typer(configs_cli.app)

WAIT_SECONDS = 30.0
#: More than one request holds.
MANY = 600


def change_brokers(cluster: KafkaCluster, config: str, value: str | None) -> None:
    """Set or delete a config of a cluster's one broker, as `kafka-configs` does while it runs."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(config, value or "", incremental_operation=operation)
    (node,) = cluster.node_ids
    resource = ConfigResource(ResourceType.BROKER, str(node), incremental_configs=[entry])
    client = admin(cluster)
    client.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)


def a_flow(mirrored: MirroredTopic, settings: dict[str, str] | None = None, *, topics: str | None = None) -> Flow:
    # Other tests may leave a heartbeats topic behind, which every flow would take.
    own = {"A->B.heartbeats.replication.enabled": "false"}
    return mirrored.flow({**own, **(settings or {})}, topics=topics)


def both(mirrored: MirroredTopic, source: dict[str, str], target: dict[str, str], *, suffix: str = "") -> None:
    """A topic and its remote topic."""
    create_topic(mirrored.source, mirrored.name + suffix, configs=source)
    create_topic(mirrored.target, mirrored.remote + suffix, configs=target)


def apply(flow: Flow) -> ConfigSync:
    return apply_flow_configs(flow.config, flow_topology(flow.config))


def plan(flow: Flow) -> ConfigSync:
    return plan_flow_configs(flow.config, flow_topology(flow.config))


@pytest.fixture(scope="module")
def _own_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaPair]:
    """Clusters whose brokers have settings of their own, for topics by the hundred."""
    source, target = (
        KafkaCluster(name, directory=brokers_folder / name, jars=kafka_jars, overrides=overrides)
        for name, overrides in (("configs-source", {"log.flush.interval.ms": "7000"}), ("configs-target", {}))
    )
    with start_together(source, target):
        yield KafkaPair(source, target)


@pytest.fixture
def on_own(_own_pair: KafkaPair, topic_name: str, tmp_path: Path) -> MirroredTopic:
    return MirroredTopic(_own_pair, topic_name, tmp_path)


def test_a_changed_config_arrives_and_a_deleted_one_goes(mirrored: MirroredTopic) -> None:
    both(
        mirrored,
        {"max.message.bytes": "77777", "cleanup.policy": "compact,delete", "min.insync.replicas": "1"},
        {"max.message.bytes": "55555", "segment.ms": "1000000", "message.timestamp.type": "LogAppendTime"},
    )
    flow = a_flow(mirrored)

    done = apply(flow)

    assert (done.exit_code, len(done.plan.changes)) == (0, 1)
    expected = {
        "retention.ms": "-1",
        "max.message.bytes": "77777",
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "LogAppendTime",
    }
    wait_for(lambda: own_configs(mirrored.target, mirrored.remote) == expected)
    assert plan(flow).plan.changes == ()
    assert plan(flow).plan.unchanged == 1


def test_a_topic_that_the_cluster_refuses_stops_no_other(mirrored: MirroredTopic) -> None:
    wanted = {"min.compaction.lag.ms": "1000000", "retention.ms": "9000000"}
    both(mirrored, wanted, {"max.compaction.lag.ms": "100"}, suffix="-bad")
    both(mirrored, {"min.compaction.lag.ms": "1000000"}, {}, suffix="-good")
    # What was set by hand stays, and contradicts what the source wants.
    flow = a_flow(mirrored, {"A->B.mirror.configs.never": "max.compaction.lag.ms"}, topics=f"{mirrored.name}.*")

    done = apply(flow)

    assert [(change.topic, error.reason) for change, error in done.failed] == [
        (f"A.{mirrored.name}-bad", "request-refused")
    ]
    assert done.failed[0][1].where.topic == f"A.{mirrored.name}-bad"
    assert done.notices == ()
    # What the cluster takes of it is done.
    wait_for(lambda: own_configs(mirrored.target, f"A.{mirrored.name}-bad").get("retention.ms") == "9000000")
    assert done.exit_code == 1
    wait_for(lambda: own_configs(mirrored.target, f"A.{mirrored.name}-good").get("min.compaction.lag.ms") == "1000000")


def test_a_value_below_kafkas_limit_is_a_notice_as_at_the_creation_of_a_topic(mirrored: MirroredTopic) -> None:
    """Since 4.0 segment.bytes is at least 1 MiB (KIP-1030), and topics of older clusters keep smaller values."""
    both(mirrored, {"segment.bytes": "2000000", "segment.ms": "2000000"}, {})
    flow = a_flow(mirrored)
    planned = plan(flow).plan
    (change,) = planned.changes
    steps = tuple(replace(step, new="51200") if step.name == "segment.bytes" else step for step in change.steps)

    with ClusterAdmin(Connection.from_settings(flow.config.clients.target_admin), WAIT_SECONDS) as target:
        done = apply_configs(replace(planned, changes=(replace(change, steps=steps),)), target)

    assert (done.exit_code, done.failed) == (0, ())
    (notice,) = done.notices
    assert "rejects the topic config segment.bytes" in notice
    assert "mirror.configs.never = segment.bytes" in notice
    wait_for(lambda: own_configs(mirrored.target, mirrored.remote).get("segment.ms") == "2000000")


def test_two_sources_of_one_name_are_left_alone_and_told(mirrored: MirroredTopic) -> None:
    for end in ("a", "b"):
        create_topic(mirrored.source, f"{mirrored.name}-{end}", configs={"max.message.bytes": "77777"})
    create_topic(mirrored.target, f"{mirrored.name}-all")
    renames = f"{mirrored.name}-a:{mirrored.name}-all,{mirrored.name}-b:{mirrored.name}-all"

    made = plan(a_flow(mirrored, {"A->B.mirror.topics.rename": renames}, topics=f"{mirrored.name}.*"))

    assert made.plan.changes == ()
    assert {error.reason for error in made.plan.problems} == {"topology"}


def test_what_brokers_are_set_to_counts_as_mm2_has_it(on_own: MirroredTopic) -> None:
    """Set while they run: becomes a config of the remote topic. In server.properties: neither set nor deleted."""
    both(on_own, {}, {"flush.ms": "9000"})
    flow = a_flow(on_own)

    def gives(expected: dict[str, str]) -> bool:
        apply(flow)
        return own_configs(on_own.target, on_own.remote) == {"retention.ms": "-1", "flush.ms": "9000", **expected}

    change_brokers(on_own.source, "log.segment.bytes", "20000000")
    wait_for(lambda: gives({"segment.bytes": "20000000"}))

    change_brokers(on_own.source, "log.segment.bytes", None)
    wait_for(lambda: gives({}))


def test_hundreds_of_topics_take_few_requests(on_own: MirroredTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{on_own.name}-{number}" for number in range(MANY)]
    for cluster, prefix, value in ((on_own.source, "", "77777"), (on_own.target, "A.", "55555")):
        client = admin(cluster)
        wanted = [NewTopic(prefix + name, 1, 1, config={"max.message.bytes": value}) for name in names]
        for future in client.create_topics(wanted, operation_timeout=120, request_timeout=120).values():
            future.result(120)
    flow = a_flow(on_own, topics=f"{on_own.name}.*")
    described = ("list_topics", "describe_topics", "describe_configs", "describe_cluster")
    calls = counted(monkeypatch, AdminClient, *described, "incremental_alter_configs")

    done = apply(flow)

    assert (len(done.plan.changes), done.exit_code) == (MANY, 0)
    # 500 topics in a request, on each cluster; one request for all changes.
    assert calls["describe_configs"] == 4
    assert calls["incremental_alter_configs"] == 1
    assert calls.total() <= 10
    wait_for(lambda: own_configs(on_own.target, f"A.{names[-1]}")["max.message.bytes"] == "77777")


def test_a_scheduled_step_keeps_mm2s_interval(mirrored: MirroredTopic) -> None:
    both(mirrored, {"max.message.bytes": "77777"}, {})
    flow = a_flow(mirrored)
    topology = flow_topology(flow.config)

    dry = sync_flow_configs(flow.config, topology, flow.ledger, dry_run=True)
    first = sync_flow_configs(flow.config, topology, flow.ledger, dry_run=False)
    set_config(mirrored.source, mirrored.name, "max.message.bytes", "88888")
    second = sync_flow_configs(flow.config, topology, flow.ledger, dry_run=False)
    eager = flow.config.model_copy(update={"sync_topic_configs_interval_seconds": 0})
    third = sync_flow_configs(eager, topology, flow.ledger, dry_run=False)

    assert [dry["changed"], first["changed"], second["changed"], third["changed"]] == [1, 1, 0, 1]
    assert [dry["skipped"], first["skipped"], third["skipped"]] == [None, None, None]
    assert "sync.topic.configs.interval.seconds" in second["skipped"]


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_misspelt_topic_is_refused_instead_of_called_unchanged(mirrored: MirroredTopic, command: str) -> None:
    mirrored.create()
    path = a_flow(mirrored).path
    options = ["--config", str(path), "--flow", "A->B", "--topics", f"{mirrored.name}-x", "--json"]

    done = CliRunner().invoke(app, ["configs", command, *options])

    assert done.exit_code == 2
    assert f"copies no topic that matches {mirrored.name}-x" in done.output


def test_the_command_plans_and_applies(mirrored: MirroredTopic) -> None:
    both(
        mirrored,
        {"max.message.bytes": "77777"},
        {"min.insync.replicas": "1", "segment.ms": "1000000"},
    )
    path = a_flow(mirrored).path
    options = ["--config", str(path), "--flow", "A->B"]

    planned = CliRunner().invoke(app, ["configs", "plan", *options, "--json"])
    shown = CliRunner().invoke(app, ["configs", "plan", *options])
    applied = CliRunner().invoke(app, ["configs", "apply", *options, "--json"])

    assert (planned.exit_code, shown.exit_code, applied.exit_code) == (0, 0, 0)
    steps = {step["name"]: step for change in json.loads(planned.stdout)["changes"] for step in change["steps"]}
    assert steps["max.message.bytes"]["new"] == "77777"
    assert steps["segment.ms"] == {
        "name": "segment.ms",
        "operation": "delete",
        "old": "1000000",
        "new": None,
        "rule": "default on the source",
    }
    assert "max.message.bytes" in shown.stdout
    assert json.loads(applied.stdout)["applied"] is True
    wait_for(lambda: "segment.ms" not in own_configs(mirrored.target, mirrored.remote))
