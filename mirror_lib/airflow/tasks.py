"""What the Python tasks of a flow's DAG do. Kafka and SQL are imported when a task runs, not while DAGs are parsed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.run_report import STEP_KEY, failed_steps, report_text, steps_text
from mirror_lib.airflow.spark_connection import check_connect_server, describe_master, master_of
from mirror_lib.airflow.trigger_form import TriggerChoices
from mirror_lib.errors import MirrorError
from mirror_lib.observe.airflow_runs import trigger_text
from mirror_lib.observe.run_totals import topic_totals
from mirror_lib.relay.submission import runs_here, submit_settings

if TYPE_CHECKING:
    from mirror_lib.cluster.admin import ClusterAdmin
    from mirror_lib.cluster.version_limits import VersionLimit
    from mirror_lib.config.model import ClientSettings, FlowConfig, MirrorConfig
    from mirror_lib.ledger.store import Ledger
    from mirror_lib.relay.gather import FlowClusters
    from mirror_lib.topology.loops import Loop
    from mirror_lib.topology.selection import FlowTopology

_log = logging.getLogger(__name__)

#: Runs of one DAG run: one for each attempt of `replicate`.
_RUNS_LOOKED_AT = 50
#: What else a run does than copying, in the order in which the report tells it.
REPORTED_STEPS = ("sync_topic_configs", "sync_topic_acls", "translate_offsets", "sync_group_offsets", "heartbeats")
#: Of these, what Airflow skips together with the copy.
_ONLY_AFTER_COPY = frozenset({"heartbeats"})
#: A cluster that says nothing for so long is not there; the task is tried again later anyway.
_CONTACT_SECONDS = 20.0


def preflight(flow: str, config_path: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the configuration, asks both clusters, the ledger and Spark, and says what this run selects."""
    from mirror_lib.config.name_patterns import named_topics
    from mirror_lib.sync.flow_topics import refused_configs
    from mirror_lib.sync.hidden import about_missing
    from mirror_lib.sync.needed_topics import check_needed_topics

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    for problem in config.warnings:
        _log.warning("%s: %s", config.path, problem.message)
    topology = _topology(settings, choices)
    with _connected(settings) as clusters:
        topics = _topics_of(settings, clusters.source_admin, settings.clients.source_admin)
        _topics_of(settings, clusters.target_admin, settings.clients.target_admin)
        _check_clusters(config, clusters)
        obstacles = check_needed_topics(settings, clusters.source_admin, clusters.target_admin)
        selected = [topic for topic in topics if topology.replicates(topic)]
        topology.refuse_empty_choice(topics)
        if not selected:
            _log.warning(
                "Flow %s selects none of the %d topics of cluster %s: check `topics`.",
                flow,
                len(topics),
                settings.flow.source,
            )
        _log.info("Flow %s selects %d of %d topics.", flow, len(selected), len(topics))
        for loop in _refuse_loops(config, settings, selected):
            _log.warning("Other flows of %s would copy records of this one in a circle: %s.", config.path, loop)
        for warning in (
            *about_missing(settings, sorted(named_topics(settings) - set(topics))),
            *obstacles,
            *refused_configs(settings, topology, clusters.source_admin, clusters.target_admin),
            *_version_limits(settings),
            *_limit_warnings(clusters, topology, selected),
            *_forecast_warnings(config, clusters, choices),
        ):
            _log.warning("Flow %s: %s", flow, warning)
    _check_spark(settings, choices)
    if settings.airflow_pool:
        # Tasks cannot ask Airflow for its pools.
        _log.info("The copy takes a slot of the pool %s: it waits while there is no such pool.", settings.airflow_pool)
    return {"selected_topics": len(selected), "source_topics": len(topics)}


def sync_topics(flow: str, config_path: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Creates missing target topics and adds missing partitions; a dry run only prints what it would do."""
    from mirror_lib.sync.flow_topics import sync_flow_topics

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    with _open_ledger(config) as ledger:
        return sync_flow_topics(settings, topology, ledger, dry_run=choices.dry_run)


def sync_topic_configs(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Carries changed topic configs to the target, at the interval that the file sets."""
    from mirror_lib.sync.flow_configs import sync_flow_configs

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    with _open_ledger(config) as ledger:
        done = sync_flow_configs(settings, topology, ledger, dry_run=choices.dry_run, at_once=_is_repeated(context))
        _keep(ledger, flow, sync_topic_configs, done, choices)
    return _ended(flow, "topic configs", done, context)


def sync_topic_acls(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Carries ACLs of the flow's topics to the target, at the interval that the file sets."""
    from mirror_lib.sync.flow_acls import sync_flow_acls

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    dag_run = context["dag_run"]
    by = trigger_text(dag_run.dag_id, dag_run.run_id)
    with _open_ledger(config) as ledger:
        done = sync_flow_acls(settings, topology, ledger, dry_run=choices.dry_run, by=by, at_once=_is_repeated(context))
        _keep(ledger, flow, sync_topic_acls, done, choices)
    return _ended(flow, "ACLs", done, context)


def translate_offsets(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Translates what consumer groups have committed on the source and writes checkpoints, at the file's interval."""
    from mirror_lib.sync.flow_groups import translate_flow_offsets

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    with _open_ledger(config) as ledger:
        done = translate_flow_offsets(
            settings,
            topology,
            ledger,
            dry_run=choices.dry_run,
            complete=not choices.topics,
            at_once=_is_repeated(context),
        )
        _keep(ledger, flow, translate_offsets, done, choices)
    return _ended(flow, "group positions", done, context)


def sync_group_offsets(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Commits translated offsets on the target for groups without members there, if the file says so."""
    from mirror_lib.sync.flow_groups import sync_flow_group_offsets

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    with _open_ledger(config) as ledger:
        done = sync_flow_group_offsets(
            settings,
            topology,
            ledger,
            dry_run=choices.dry_run,
            complete=not choices.topics,
            at_once=_is_repeated(context),
        )
        _keep(ledger, flow, sync_group_offsets, done, choices)
    return _ended(flow, "group positions", done, context)


def report(flow: str, config_path: str, **context: Any) -> dict[str, Any]:
    """Prints what this run copied and did beside the copy, and fails the run when something was left undone.

    Skipped where the copy was left to another run.
    """
    config, _ = _load(config_path, flow)
    instance, dag_run = context["ti"], context["dag_run"]
    outcome = instance.xcom_pull(task_ids="replicate", key=REPORT_KEY)
    steps = {step: instance.xcom_pull(task_ids=step, key=STEP_KEY) for step in REPORTED_STEPS}
    ledger = _open_ledger(config)
    trigger = trigger_text(dag_run.dag_id, dag_run.run_id)
    # Oldest first: the last row of a partition decides whether it failed.
    runs = ledger.runs(flow, _RUNS_LOOKED_AT, trigger=trigger)[::-1]
    rows = [row for run in runs for row in ledger.partition_runs(run.id)]
    totals = topic_totals(rows)
    _log.info("%s\n\n%s", report_text(flow, outcome, totals), steps_text(steps))
    if outcome is None:
        raise AirflowFailException(f"flow {flow} was not copied: a task before the report failed, see its log.")
    problems: list[str] = []
    skipped = outcome.get("skipped")
    if skipped is not None:
        # What follows the copy alone is skipped with it.
        steps = {name: done for name, done in steps.items() if done is not None or name not in _ONLY_AFTER_COPY}
    elif outcome["exit_code"]:
        problems += outcome["problems"] or ["the Spark job failed"]
    problems += failed_steps(steps)
    if problems:
        raise AirflowFailException(f"flow {flow}: " + "; ".join(problems))
    if skipped is not None:
        raise AirflowSkipException(f"flow {flow}: {skipped}")
    return {
        "dry_run": outcome["dry_run"],
        "records": sum(total.records for total in totals),
        "bytes": sum(total.bytes for total in totals),
        "topics": len(totals),
        "runs": [run.id for run in runs],
        "steps": steps,
    }


def _keep(
    ledger: Ledger, flow: str, task: Callable[..., Any], done: Mapping[str, Any], choices: TriggerChoices
) -> None:
    """Leave a step's outcome for those who watch; what was done for some topics says nothing about the flow."""
    from mirror_lib.sync.observed import save_step

    if not choices.topics:
        save_step(ledger, flow, task.__name__, done)


def _is_repeated(context: Mapping[str, Any]) -> bool:
    """Whether somebody has the task done again in the same DAG run: then its interval has no say."""
    return bool(context["ti"].try_number > 1)


def _ended(flow: str, what: str, done: dict[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Shows a step that was left out as skipped, and fails one that the cluster refused in part."""
    # A task that is skipped or fails returns nothing, and the report is to tell of it all the same.
    context["ti"].xcom_push(key=STEP_KEY, value=done)
    if done["skipped"] is not None:
        raise AirflowSkipException(done["skipped"])
    if done["failed"]:
        raise AirflowFailException(f"flow {flow}: {done['failed']} {what} were refused: " + "; ".join(done["problems"]))
    return done


def _load(config_path: str, flow: str) -> tuple[MirrorConfig, FlowConfig]:
    from mirror_lib.ledger.handovers import load_flow_as_it_runs

    return load_flow_as_it_runs(Path(config_path), flow)


def _topology(settings: FlowConfig, choices: TriggerChoices) -> FlowTopology:
    from mirror_lib.config.flow_topology import flow_topology

    return flow_topology(settings, choices.topics)


def _refuse_loops(config: MirrorConfig, settings: FlowConfig, topics: list[str]) -> tuple[Loop, ...]:
    from mirror_lib.sync.flow_loops import refuse_loops

    return refuse_loops(config, settings, topics)


def _version_limits(settings: FlowConfig) -> list[VersionLimit]:
    from mirror_lib.cluster.connection import Connection
    from mirror_lib.cluster.version_limits import version_limits

    sides = ((settings.clients.source_admin, True), (settings.clients.target_admin, False))
    return [
        limit for client, source in sides for limit in version_limits(Connection.from_settings(client), source=source)
    ]


def _connected(settings: FlowConfig) -> FlowClusters:
    """The clients of both clusters, for all that is asked here."""
    from mirror_lib.relay.gather import FlowClusters

    return FlowClusters.connect(settings, admin_seconds=_CONTACT_SECONDS)


def _topics_of(settings: FlowConfig, admin: ClusterAdmin, client: ClientSettings) -> list[str]:
    try:
        return list(admin.list_topics())
    except MirrorError:
        servers = client.properties["bootstrap.servers"]
        _log.error("Flow %s cannot use cluster %s at %s.", settings.flow, client.cluster, servers)
        raise


def _check_clusters(config: MirrorConfig, clusters: FlowClusters) -> None:
    """Fail if the ledger is about other clusters than the aliases name: the sync tasks use it in parallel."""
    from mirror_lib.sync.cluster_identity import check_clusters

    with _open_ledger(config) as ledger:
        check_clusters(clusters.flow, ledger, clusters.ids())


def _limit_warnings(clusters: FlowClusters, topology: FlowTopology, topics: list[str]) -> list[str]:
    """What target topics may refuse or delete, also those that `sync_topics` is about to make."""
    from mirror_lib.relay.limits import topic_warnings
    from mirror_lib.relay.new_topics import limits_of_new_topics

    remote = {topic: topology.remote_topic(topic) for topic in topics}
    policy, schedule = clusters.flow.copy_settings.poison_policy, clusters.flow.schedule
    admins = clusters.source_admin, clusters.target_admin
    new = partial(limits_of_new_topics, clusters.flow, *admins)
    return topic_warnings(*admins, remote, policy=policy, schedule=schedule, to_create=new)


def _forecast_warnings(config: MirrorConfig, clusters: FlowClusters, choices: TriggerChoices) -> list[str]:
    """What the source's retention deletes, or may delete, before it is copied."""
    from mirror_lib.relay.flow_forecast import forecast_warnings
    from mirror_lib.relay.run_model import RunOptions

    with _open_ledger(config) as ledger:
        return forecast_warnings(clusters.flow, RunOptions(topics=choices.topics), ledger, clusters)


def _open_ledger(config: MirrorConfig) -> Ledger:
    from mirror_lib.ledger.location import open_ledger

    return open_ledger(config)


def _check_spark(settings: FlowConfig, choices: TriggerChoices) -> None:
    """Spark's driver is a JVM on this machine in client mode, which is the only mode Python jobs have there."""
    from mirror_lib.dev.java import find_java
    from mirror_lib.relay.spark_check import cluster_notes
    from mirror_lib.relay.spark_home import spark_defaults

    _log.info("%s", describe_master(settings.spark_connection))
    master = master_of(settings.spark_connection)
    if runs_here(master):
        find_java()
    check_connect_server(settings.spark_connection)
    for note in cluster_notes(
        {**spark_defaults(os.environ), **submit_settings(master)},
        master=master,
        tasks=choices.tasks or settings.tasks_max,
        task_memory_bytes=settings.copy_settings.task_memory_bytes,
        transforms=bool(settings.transforms),
    ):
        _log.warning("%s", note)
