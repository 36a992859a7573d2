"""The tasks of a flow's DAG that sync topics, their configs and ACLs, and group offsets."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow.form import job_arguments
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.config.topology import flow_topology
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.sync.acls.flow import sync_flow_acls
from mirror_lib.sync.configs.flow import sync_flow_configs
from mirror_lib.sync.due_steps import why_not_due
from mirror_lib.sync.groups.flow import sync_flow_groups
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.sync.observed import save_step
from mirror_lib.sync.topics.flow import sync_flow_topics

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig
    from mirror_lib.ledger.store import Ledger
    from mirror_lib.topology.flow_topology import FlowTopology

_log = logging.getLogger(__name__)
#: XCom key of the tasks that preflight has Airflow skip.
SKIPPED_KEY = "skipped"
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


def sync_topics(flow: str, config_path: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Create target topics and add partitions that are missing; a dry run only prints the plan."""
    choices = job_arguments(flow, config_path, params)
    config, settings = load_flow_as_it_runs(choices.config, flow)
    topology = flow_topology(settings, choices.topics)
    with open_ledger(config) as ledger:
        return sync_flow_topics(settings, topology, ledger, dry_run=choices.dry_run)


def sync_topic_configs(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Sync topic configs, if that is due."""
    return _step(sync_topic_configs.__name__, flow, config_path, params, context)


def sync_topic_acls(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Sync ACLs, if that is due."""
    return _step(sync_topic_acls.__name__, flow, config_path, params, context)


def translate_offsets(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Translate group offsets and write checkpoints, if that is due."""
    return _step(translate_offsets.__name__, flow, config_path, params, context)


def sync_group_offsets(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Commit translated group offsets on the target, if that is due."""
    return _step(sync_group_offsets.__name__, flow, config_path, params, context)


def _step(
    step: str, flow: str, config_path: str, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    choices = job_arguments(flow, config_path, params)
    config, settings = load_flow_as_it_runs(choices.config, flow)
    topology = flow_topology(settings, choices.topics)
    dag_run = context["dag_run"]
    by = trigger_text(dag_run.dag_id, dag_run.run_id)
    at_once = is_repeated(step, context["ti"])
    with open_ledger(config) as ledger:
        done = do_sync_step(
            step,
            settings,
            topology,
            ledger,
            by=by,
            at_once=at_once,
            dry_run=choices.dry_run,
            complete=not choices.topics,
        )
    return _finish_step(flow, _STEP_SUBJECTS[step], done, context)


def do_sync_step(
    step: str,
    settings: FlowConfig,
    topology: FlowTopology,
    ledger: Ledger,
    *,
    by: str,
    at_once: bool = False,
    dry_run: bool = False,
    complete: bool = True,
) -> dict[str, Any]:
    """Do a step of `SYNC_STEPS` if it is due, and record its outcome for monitoring.

    Args:
        by: who does it, for the ledger.
        at_once: regardless of its interval.
        complete: False if the run is limited to some topics.

    Raises:
        MirrorError: a cluster or the ledger cannot be used.
    """
    how: dict[str, Any] = {"dry_run": dry_run, "at_once": at_once}
    if step == sync_topic_configs.__name__:
        done = sync_flow_configs(settings, topology, ledger, **how)
    elif step == sync_topic_acls.__name__:
        done = sync_flow_acls(settings, topology, ledger, by=by, **how)
    else:
        due = SyncStep.CHECKPOINTS if step == translate_offsets.__name__ else SyncStep.GROUP_OFFSETS
        done = sync_flow_groups(settings, topology, ledger, due, complete=complete, trigger=by, **how)
    # Runs limited to some topics are not recorded.
    if complete:
        save_step(ledger, str(settings.flow), step, done)
        if step == sync_group_offsets.__name__ and done["skipped"] is None and not (done["failed"] or done["dry_run"]):
            # It has written the checkpoints, too.
            ledger.note_sync(str(settings.flow), SyncStep.CHECKPOINTS, datetime.now(UTC))
            save_step(ledger, str(settings.flow), translate_offsets.__name__, done)
    return done


def why_left_to_commits(settings: FlowConfig, ledger: Ledger, *, at_once: bool) -> str | None:
    """Return why `translate_offsets` has nothing to do, as text; None if it has.

    `sync_group_offsets` writes the checkpoint of every group before it commits. If both steps are due, it alone reads
    groups, maps and logs.
    """
    now = datetime.now(UTC)
    steps = (SyncStep.CHECKPOINTS, SyncStep.GROUP_OFFSETS)
    if any(why_not_due(settings, step, ledger, now, at_once=at_once) is not None for step in steps):
        return None
    return f"{sync_group_offsets.__name__} writes the checkpoints, too"


def is_repeated(task: str, instance: Any) -> bool:
    """Return True if a task was cleared in the same DAG run: then its interval does not apply."""
    # Preflight may have had Airflow skip its first attempt.
    return bool(instance.try_number > 1) or task in (instance.xcom_pull(task_ids="preflight", key=SKIPPED_KEY) or ())


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
