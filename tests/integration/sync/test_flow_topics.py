"""A flow's topics between two real clusters: planned, created, grown, and refused with reasons."""

import json
import logging

import pytest
from typer import Typer
from typer.testing import CliRunner

from mirror_lib.cli.sync import topics as topics_cli
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import ConfigurationError
from mirror_lib.sync.topics.flow import apply_flow_topics, plan_flow_topics, sync_flow_topics
from mirror_lib.sync.topics.plan import GrowPartitions
from tests.support.flows import Flow
from tests.support.kafka import create_topic, own_configs, partition_count, produce, records, topic_names
from tests.support.mirrored_topic import MirroredTopic

app = Typer()
app.add_typer(topics_cli.app)


def a_flow(mirrored: MirroredTopic, settings: dict[str, str] | None = None, *, topics: str | None = None) -> Flow:
    # Other tests may leave a heartbeats topic behind, which every flow would take.
    own = {"A->B.heartbeats.replication.enabled": "false"}
    return mirrored.flow({**own, **(settings or {})}, topics=topics)


def test_a_new_topic_gets_the_sources_partitions_and_allowed_configs(mirrored: MirroredTopic) -> None:
    own = {"cleanup.policy": "compact", "max.message.bytes": "77777", "message.timestamp.type": "LogAppendTime"}
    mirrored.create(partitions=5, configs=own)
    flow = a_flow(mirrored)

    done = flow.sync_topics()

    assert [step.name for step in done.plan.create] == [mirrored.remote]
    assert done.exit_code == 0
    assert partition_count(mirrored.target, mirrored.remote) == 5
    copied = own_configs(mirrored.target, mirrored.remote)
    assert copied["cleanup.policy"] == "compact"
    assert copied["max.message.bytes"] == "77777"
    assert "message.timestamp.type" not in copied
    again = flow.sync_topics()
    assert (again.plan.changes, again.plan.unchanged, again.results) == (0, 1, ())


def test_a_grown_source_grows_its_target(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=6)
    mirrored.create_remote(partitions=2)
    done = a_flow(mirrored).sync_topics()
    assert done.plan.grow == (GrowPartitions(mirrored.remote, 2, 6),)
    assert partition_count(mirrored.target, mirrored.remote) == 6


def test_what_the_cluster_refuses_is_told_per_topic(mirrored: MirroredTopic) -> None:
    for end in ("x", "good"):
        create_topic(mirrored.source, f"{mirrored.name}-{end}")
    create_topic(mirrored.target, f"A.{mirrored.name}-good")
    flow = a_flow(mirrored, {"mirror.configs.override": "cleanup.policy=tidy"}, topics=f"{mirrored.name}.*")
    done = flow.sync_topics()
    assert [result.step.name for result in done.failures] == [f"A.{mirrored.name}-x"]
    assert done.exit_code == 1
    told = json.loads(json.dumps(done.to_dict()))["failed"]
    assert [row["name"] for row in told] == [f"A.{mirrored.name}-x"]
    assert "cleanup.policy" in told[0]["what"]


def test_a_name_that_differs_from_an_existing_one_only_in_dots_is_a_conflict_for_every_step(
    mirrored: MirroredTopic,
) -> None:
    """Kafka does not create such a topic: planning says so before, and a run does not ask for topics to be created."""
    for end in (".x", "-good"):
        create_topic(mirrored.source, f"{mirrored.name}{end}")
        produce(mirrored.source, f"{mirrored.name}{end}", records(3))
    create_topic(mirrored.target, f"A.{mirrored.name}_x")
    flow = a_flow(mirrored, topics=f"{mirrored.name}.*")

    planned = plan_flow_topics(flow.config, flow_topology(flow.config))
    (problem,) = plan_flow(flow.config, RunOptions(), flow.ledger).problems
    done = flow.sync_topics()
    report = flow.run(sync=False)

    for plan in (planned.plan, done.plan):
        assert [conflict.name for conflict in plan.conflicts] == [f"A.{mirrored.name}.x"]
        assert f"A.{mirrored.name}_x" in plan.conflicts[0].what
    assert (done.exit_code, done.failures) == (3, ())
    assert f"A.{mirrored.name}-good" in topic_names(mirrored.target)
    for error in (problem.error, *report.errors):
        assert (error.reason, error.where.topic) == ("topology", f"{mirrored.name}.x")
    assert (report.records, len(report.errors)) == (3, 1)


def test_a_choice_that_matches_no_topic_is_refused_before_any_topic_is_created(mirrored: MirroredTopic) -> None:
    mirrored.create()
    positions = f"{mirrored.name}-positions"
    flow = a_flow(mirrored, {"B.offset.storage.topic": positions}).config

    for step in (plan_flow_topics, apply_flow_topics):
        with pytest.raises(ConfigurationError, match="misspelt"):
            step(flow, flow_topology(flow, ["misspelt"]))

        assert positions not in topic_names(mirrored.target), step


def test_a_scheduled_step_tells_its_log_and_returns_counts(
    mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    mirrored.create()
    flow = a_flow(mirrored).config
    with caplog.at_level(logging.INFO):
        dry = sync_flow_topics(flow, flow_topology(flow), dry_run=True)
        done = sync_flow_topics(flow, flow_topology(flow), dry_run=False)
    assert (dry["dry_run"], dry["created"], done["created"], done["failed"]) == (True, 1, 1, 0)
    assert f"Flow A->B would create A.{mirrored.name}: 1 partition, 1 replica" in caplog.text
    assert mirrored.remote in topic_names(mirrored.target)


def test_the_command_plans_and_applies(mirrored: MirroredTopic) -> None:
    for end in ("one", "two"):
        create_topic(mirrored.source, f"{mirrored.name}-{end}", partitions=2)
    path = a_flow(mirrored, topics=f"{mirrored.name}.*").path
    options = ["--config", str(path), "--flow", "A->B"]
    only_one = [*options, "--topics", ".*-one"]

    planned = CliRunner().invoke(app, ["topics", "plan", *only_one, "--json"])
    applied = CliRunner().invoke(app, ["topics", "apply", *only_one])
    after = CliRunner().invoke(app, ["topics", "plan", *options, "--json"])

    assert planned.exit_code == 0
    created = json.loads(planned.stdout)["create"]
    assert [step["name"] for step in created] == [f"A.{mirrored.name}-one"]
    assert applied.exit_code == 0
    assert f"create A.{mirrored.name}-one: 2 partitions" in applied.stdout
    left = json.loads(after.stdout)
    assert ([step["name"] for step in left["create"]], left["unchanged"]) == ([f"A.{mirrored.name}-two"], 1)
