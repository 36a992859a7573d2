"""Python tasks of a flow's DAG. Kafka and SQL are imported when a task runs, not while DAGs are parsed."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY, failed_steps, report_text, steps_text
from mirror_lib.airflow.spark import check_connect_server, check_deferrable, describe_master, master_of
from mirror_lib.airflow.task_states import task_state
from mirror_lib.errors import MirrorError
from mirror_lib.observe import topic_totals, trigger_text
from mirror_lib.spark import runs_here, submit_settings
from mirror_lib.sync import SyncStep

if TYPE_CHECKING:
    from mirror_lib.cluster import VersionLimit
    from mirror_lib.cluster.admin import ClusterAdmin
    from mirror_lib.config import ClientSettings, FlowConfig, MirrorConfig
    from mirror_lib.ledger import Ledger
    from mirror_lib.relay import RunPlan
    from mirror_lib.relay.health import NextRun
    from mirror_lib.relay.planning import FlowClusters
    from mirror_lib.topology import FlowTopology, Loop

_log = logging.getLogger(__name__)

#: Runs of one DAG run: one for each attempt of `replicate`.
_RUNS_LOOKED_AT = 50
#: Steps of a run in addition to the copy, in the order of the report.
REPORTED_STEPS = ("sync_topic_configs", "sync_topic_acls", "translate_offsets", "sync_group_offsets", "heartbeats")
#: The steps of `do_sync_step`, by task.
SYNC_STEPS = {
    "sync_topic_configs": SyncStep.TOPIC_CONFIGS,
    "sync_topic_acls": SyncStep.TOPIC_ACLS,
    "translate_offsets": SyncStep.CHECKPOINTS,
    "sync_group_offsets": SyncStep.GROUP_OFFSETS,
}
#: What the steps sync.
_STEP_SUBJECTS = {
    "sync_topic_configs": "topic configs",
    "sync_topic_acls": "ACLs",
    "translate_offsets": "group offsets",
    "sync_group_offsets": "group offsets",
}
#: The task that decides what the others have to do, and does a run without records itself (`idle_run`).
PREFLIGHT = "preflight"
#: A cluster without a response for this time is unreachable; the task is retried later anyway.
_CONTACT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CheckedFlow:
    """A flow whose clusters, ledger and Spark were checked."""

    config: MirrorConfig
    settings: FlowConfig
    topology: FlowTopology
    selected_topics: int
    source_topics: int
    #: What the run would copy now; None if it could not be planned.
    plan: RunPlan | None
    warnings: frozenset[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for XCom."""
        return {"selected_topics": self.selected_topics, "source_topics": self.source_topics}


def check_flow(flow: str, config_path: str, choices: TriggerChoices) -> CheckedFlow:
    """Read the configuration, check both clusters, the ledger and Spark, and log what this run selects.

    Raises:
        MirrorError: the flow cannot run.
    """
    from mirror_lib.config import named_topics
    from mirror_lib.sync import about_missing
    from mirror_lib.sync.topics import check_needed_topics, refused_configs

    config, settings = _load(config_path, flow)
    for problem in config.warnings:
        _log.warning("%s: %s", config.path, problem.message)
    topology = _topology(settings, choices)
    with _connect(settings) as clusters:
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
            _log.warning("Other flows of %s would copy records of this flow in a loop: %s.", config.path, loop)
        next_run = _next_run(config, clusters, choices)
        warnings = (
            *about_missing(settings, sorted(named_topics(settings) - set(topics))),
            *obstacles,
            *refused_configs(settings, topology, clusters.source_admin, clusters.target_admin),
            *_version_limits(settings),
            *_limit_warnings(clusters, topology, selected),
            *next_run.warnings,
        )
        for warning in warnings:
            _log.warning("Flow %s: %s", flow, warning)
    _check_spark(settings, choices)
    if settings.airflow_pool:
        # Tasks cannot list Airflow's pools.
        _log.info("The copy uses a slot of the pool %s, and waits until this pool exists.", settings.airflow_pool)
    return CheckedFlow(
        config, settings, topology, len(selected), len(topics), next_run.plan, frozenset(map(str, warnings))
    )


def sync_topics(flow: str, config_path: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Creates missing target topics and adds missing partitions; a dry run only prints the plan."""
    from mirror_lib.sync.topics import sync_flow_topics

    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    with _open_ledger(config) as ledger:
        return sync_flow_topics(settings, topology, ledger, dry_run=choices.dry_run)


def sync_topic_configs(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Copies changed topic configs to the target, at the interval in the configuration file."""
    return _step(sync_topic_configs.__name__, flow, config_path, params, context)


def sync_topic_acls(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Copies ACLs of the flow's topics to the target, at the interval in the configuration file."""
    return _step(sync_topic_acls.__name__, flow, config_path, params, context)


def translate_offsets(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Translates the committed offsets of consumer groups and writes checkpoints, at the configured interval."""
    return _step(translate_offsets.__name__, flow, config_path, params, context)


def sync_group_offsets(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Commits translated offsets on the target for groups without members there, if the configuration enables it."""
    return _step(sync_group_offsets.__name__, flow, config_path, params, context)


def _step(
    step: str, flow: str, config_path: str, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    choices = TriggerChoices.from_params(params)
    config, settings = _load(config_path, flow)
    topology = _topology(settings, choices)
    dag_run = context["dag_run"]
    by = trigger_text(dag_run.dag_id, dag_run.run_id)
    at_once = _is_repeated(step, context)
    with _open_ledger(config) as ledger:
        done = do_sync_step(step, settings, topology, ledger, choices, by=by, at_once=at_once)
    return _finish_step(flow, _STEP_SUBJECTS[step], done, context)


def do_sync_step(
    step: str,
    settings: FlowConfig,
    topology: FlowTopology,
    ledger: Ledger,
    choices: TriggerChoices,
    *,
    by: str,
    at_once: bool = False,
) -> dict[str, Any]:
    """Do a step of `SYNC_STEPS` if it is due, and record its outcome for monitoring.

    Args:
        by: who does it, for the ledger.
        at_once: regardless of its interval.

    Raises:
        MirrorError: a cluster or the ledger cannot be used.
    """
    from mirror_lib.sync import save_step

    how: dict[str, Any] = {"dry_run": choices.dry_run, "at_once": at_once}
    if step == sync_topic_configs.__name__:
        from mirror_lib.sync.configs import sync_flow_configs

        done = sync_flow_configs(settings, topology, ledger, **how)
    elif step == sync_topic_acls.__name__:
        from mirror_lib.sync.acls import sync_flow_acls

        done = sync_flow_acls(settings, topology, ledger, by=by, **how)
    else:
        from mirror_lib.sync import SyncStep
        from mirror_lib.sync.groups import sync_flow_groups

        due = SyncStep.CHECKPOINTS if step == translate_offsets.__name__ else SyncStep.GROUP_OFFSETS
        done = sync_flow_groups(settings, topology, ledger, due, complete=not choices.topics, **how)
    # Runs limited to some topics are not recorded.
    if not choices.topics:
        save_step(ledger, str(settings.flow), step, done)
    return done


def report(flow: str, config_path: str, **context: Any) -> dict[str, Any]:
    """Prints what this run copied and the results of the sync steps; fails the run if any of them is incomplete.

    Skipped if another run of the flow copies.
    """
    config, _ = _load(config_path, flow)
    instance, dag_run = context["ti"], context["dag_run"]
    outcome = instance.xcom_pull(task_ids="replicate", key=REPORT_KEY)
    steps = {step: instance.xcom_pull(task_ids=step, key=STEP_KEY) for step in REPORTED_STEPS}
    # Steps that preflight did or skipped. A cleared task reports for itself, even if it has no outcome.
    if outcome is None and task_state(context, "replicate") == "skipped":
        outcome = instance.xcom_pull(task_ids=PREFLIGHT, key=REPORT_KEY)
    done_before = instance.xcom_pull(task_ids=PREFLIGHT, key=STEP_KEY) or {}
    steps = {
        step: done_before[step]
        if done is None and step in done_before and task_state(context, step) == "skipped"
        else done
        for step, done in steps.items()
    }
    ledger = _open_ledger(config)
    trigger = trigger_text(dag_run.dag_id, dag_run.run_id)
    # Oldest first: the last row of a partition decides whether it failed.
    runs = ledger.runs(flow, _RUNS_LOOKED_AT, trigger=trigger)[::-1]
    rows = [row for run in runs for row in ledger.partition_runs(run.id)]
    totals = topic_totals(rows)
    # Topics that could not be synced do not fail the run here: the copy reports their partitions.
    topics = instance.xcom_pull(task_ids=sync_topics.__name__, key="return_value")
    shown = steps if topics is None else {sync_topics.__name__: topics, **steps}
    _log.info("%s\n\n%s", report_text(flow, outcome, totals), steps_text(shown))
    if outcome is None:
        raise AirflowFailException(f"flow {flow} was not copied: an upstream task failed, see its log.")
    problems: list[str] = []
    skipped = outcome.get("skipped")
    if skipped is None and outcome["exit_code"]:
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


def _is_repeated(step: str, context: Mapping[str, Any]) -> bool:
    """Return True if the step was cleared in the same DAG run: then its interval does not apply."""
    instance = context["ti"]
    return bool(instance.try_number > 1) or step in (instance.xcom_pull(task_ids=PREFLIGHT, key=STEP_KEY) or {})


def _finish_step(flow: str, what: str, done: dict[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Show a step that was not due as skipped, and fail one that the cluster rejected in part."""
    # A task that is skipped or fails returns nothing, but the report needs its outcome.
    context["ti"].xcom_push(key=STEP_KEY, value=done)
    if done["skipped"] is not None:
        raise AirflowSkipException(done["skipped"])
    if done["failed"]:
        raise AirflowFailException(
            f"flow {flow}: {done['failed']} {what} were rejected: " + "; ".join(done["problems"])
        )
    return done


def _load(config_path: str, flow: str) -> tuple[MirrorConfig, FlowConfig]:
    from mirror_lib.ledger import load_flow_as_it_runs

    return load_flow_as_it_runs(Path(config_path), flow)


def _topology(settings: FlowConfig, choices: TriggerChoices) -> FlowTopology:
    from mirror_lib.config import flow_topology

    return flow_topology(settings, choices.topics)


def _refuse_loops(config: MirrorConfig, settings: FlowConfig, topics: list[str]) -> tuple[Loop, ...]:
    from mirror_lib.sync.loops import refuse_loops

    return refuse_loops(config, settings, topics)


def _version_limits(settings: FlowConfig) -> list[VersionLimit]:
    from mirror_lib.cluster import Connection, version_limits

    sides = ((settings.clients.source_admin, True), (settings.clients.target_admin, False))
    return [
        limit for client, source in sides for limit in version_limits(Connection.from_settings(client), source=source)
    ]


def _connect(settings: FlowConfig) -> FlowClusters:
    """Return the clients of both clusters, for all requests of these tasks."""
    from mirror_lib.relay.planning import FlowClusters

    return FlowClusters.connect(settings, admin_seconds=_CONTACT_SECONDS)


def _topics_of(settings: FlowConfig, admin: ClusterAdmin, client: ClientSettings) -> list[str]:
    try:
        return list(admin.list_topics())
    except MirrorError:
        servers = client.properties["bootstrap.servers"]
        _log.error("Flow %s: cannot use cluster %s at %s.", settings.flow, client.cluster, servers)
        raise


def _check_clusters(config: MirrorConfig, clusters: FlowClusters) -> None:
    """Fail if the ledger belongs to other clusters than the aliases name: the sync tasks use it in parallel."""
    from mirror_lib.sync import check_clusters

    with _open_ledger(config) as ledger:
        check_clusters(clusters.flow, ledger, clusters.ids())


def _limit_warnings(clusters: FlowClusters, topology: FlowTopology, topics: list[str]) -> list[str]:
    """Return warnings about what target topics may reject or delete, including topics that `sync_topics` will
    create.
    """
    from mirror_lib.relay.planning import limits_of_new_topics, topic_warnings

    remote = {topic: topology.remote_topic(topic) for topic in topics}
    policy, schedule = clusters.flow.copy_settings.poison_policy, clusters.flow.periodic_schedule
    admins = clusters.source_admin, clusters.target_admin
    new = partial(limits_of_new_topics, clusters.flow, *admins)
    return topic_warnings(*admins, remote, policy=policy, schedule=schedule, to_create=new)


def _next_run(config: MirrorConfig, clusters: FlowClusters, choices: TriggerChoices) -> NextRun:
    """Return what is to be copied, and what the source's retention deletes, or may delete, before it is."""
    from mirror_lib.relay import RunOptions
    from mirror_lib.relay.health import look_at_next_run

    with _open_ledger(config) as ledger:
        return look_at_next_run(clusters.flow, RunOptions(topics=choices.topics), ledger, clusters)


def _open_ledger(config: MirrorConfig) -> Ledger:
    from mirror_lib.ledger import open_ledger

    return open_ledger(config)


def _check_spark(settings: FlowConfig, choices: TriggerChoices) -> None:
    """Check Spark's driver: in client mode, the only mode for Python jobs there, it is a JVM on this machine."""
    from mirror_lib.dev import find_java
    from mirror_lib.spark import cluster_notes, spark_defaults

    _log.info("%s", describe_master(settings.spark_connection))
    master = master_of(settings.spark_connection)
    if runs_here(master):
        find_java()
    check_connect_server(settings.spark_connection)
    if settings.airflow_deferrable:
        check_deferrable(settings.spark_connection)
    for note in cluster_notes(
        {**spark_defaults(os.environ), **submit_settings(master)},
        master=master,
        tasks=choices.tasks or settings.tasks_max,
        task_memory_bytes=settings.copy_settings.task_memory_bytes,
        transforms=bool(settings.transforms),
    ):
        _log.warning("%s", note)
