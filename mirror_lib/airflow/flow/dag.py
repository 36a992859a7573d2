"""One DAG per flow. Building it reads nothing but the flow's configuration: Airflow does it every few seconds."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from mirror_lib.airflow.compatibility import DAG, TriggerRule
from mirror_lib.airflow.dag_defaults import new_dag
from mirror_lib.airflow.flow.assets import flow_alias
from mirror_lib.airflow.flow.deadline import deadline_alert
from mirror_lib.airflow.flow.documentation import TASK_DOCUMENTATION, documentation
from mirror_lib.airflow.flow.form import trigger_form
from mirror_lib.airflow.flow.replicate_operator import ReplicateOperator
from mirror_lib.airflow.flow.schedule import flow_schedule
from mirror_lib.airflow.flow.step_operator import StepOperator
from mirror_lib.airflow.forms.fields import put_form
from mirror_lib.airflow.retries import retry_policy
from mirror_lib.airflow.schedule import RUN_TYPES
from mirror_lib.airflow.spark.connection import is_deferrable
from mirror_lib.airflow.spark.pool import pool_of
from mirror_lib.config.model import FlowConfig
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features
from mirror_lib.past_runs.airflow_runs import dag_id_of

_log = logging.getLogger(__name__)
#: Time for the other tasks and for retries, in addition to the longest copy.
_SLACK = timedelta(hours=12)
#: Airflow then pauses the DAG. A failed run has used its retries, so this is far more than a short outage.
_FAILED_RUNS_BEFORE_PAUSE = 10
_CHECK_TIMEOUT = timedelta(minutes=10)
_SYNC_TIMEOUT = timedelta(minutes=30)
_RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=5),
}


def build_flow_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """Return the DAG of one flow: preflight, sync_topics, replicate, report; configs and ACLs are synced in parallel.

    If there is nothing to copy, preflight does all that is due and skips the other tasks (`idle_run`). Heartbeats are
    written before the copy, which carries them, and checked after it; groups are translated after it. Each task can be
    cleared and repeated on its own, with the form values of its run.

    Tasks get the file's path and the flow's name and read the file again when they run: a DAG holds no secrets.
    """
    source, target = flow.flow.source, flow.flow.target
    name, path = str(flow.flow), str(config_path)
    form = trigger_form(flow)
    with new_dag(
        dag_id_of(flow.flow),
        f"Mirror {source} → {target}",
        f"Copies new records of cluster {source} to cluster {target}",
        documentation(flow, path, form),
        schedule=flow_schedule(flow, path),
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        max_consecutive_failed_dag_runs=_FAILED_RUNS_BEFORE_PAUSE,
        dagrun_timeout=_timeout(flow),
        deadline=deadline_alert(flow, path),
        tags={source, target},
        task_settings={**retry_policy(), **_RETRIES},
    ) as dag:
        preflight = _python("flow.idle_run:preflight", name, path, execution_timeout=_CHECK_TIMEOUT + _SYNC_TIMEOUT)
        # Before the topics, since the first heartbeat creates one. The copy continues even if this task is skipped.
        emit = _python("heartbeats.tasks:emit_heartbeats", name, path, execution_timeout=_CHECK_TIMEOUT)
        sync_topics = _python("flow.sync_tasks:sync_topics", name, path, trigger_rule=TriggerRule.NONE_FAILED)
        replicate = _copy_operator(flow)(
            task_id="replicate",
            flow=name,
            config_path=path,
            conn_id=flow.spark_connection,
            pool=pool_of(flow),
            # The form may skip the previous step.
            trigger_rule=TriggerRule.NONE_FAILED,
            doc_md="The Spark job: plans, copies, stores positions. A retry copies what is left.",
        )
        report = _python("flow.report_task:report", name, path, trigger_rule=TriggerRule.ALL_DONE, retries=1)
        preflight >> emit >> sync_topics >> replicate
        preflight >> sync_topics
        # If cleared, it also runs after a copy that was skipped.
        heartbeats = _python(
            "heartbeats.tasks:heartbeats",
            name,
            path,
            execution_timeout=_CHECK_TIMEOUT,
            trigger_rule=TriggerRule.NONE_FAILED,
            retries=1,
        )
        # Groups are translated with the offset map of this copy; a copy that failed in part has extended it too.
        translate, commit = (
            _python(task, name, path, execution_timeout=_SYNC_TIMEOUT, trigger_rule=TriggerRule.ALL_DONE)
            for task in ("flow.sync_tasks:translate_offsets", "flow.sync_tasks:sync_group_offsets")
        )
        # They neither wait for the copy nor delay it.
        parallel = [
            _python(task, name, path, execution_timeout=_SYNC_TIMEOUT, trigger_rule=TriggerRule.NONE_FAILED)
            for task in ("flow.sync_tasks:sync_topic_configs", "flow.sync_tasks:sync_topic_acls")
        ]
        # Copied records are on the target, even if other partitions failed.
        announce = _python(
            "flow.announce_task:announce_new_records",
            name,
            path,
            execution_timeout=_CHECK_TIMEOUT,
            trigger_rule=TriggerRule.ALL_DONE,
            outlets=[flow_alias(flow.flow)],
        )
        # Runs regardless of the result of the copy. The report waits for it but ignores its state.
        observe = _python(
            "flow.observe_task:observe",
            name,
            path,
            execution_timeout=_CHECK_TIMEOUT,
            trigger_rule=TriggerRule.ALL_DONE,
            retries=0,
        )
        # Preflight skips `translate` if `commit` does its work: that must wait for the copy all the same.
        replicate >> [heartbeats, translate, commit, announce]
        translate >> commit
        sync_topics >> parallel
        [replicate, heartbeats, commit] >> observe
        # It decides if the run has failed, so it waits for all tasks.
        [replicate, heartbeats, commit, observe, *parallel] >> report
    put_form(dag, form)
    return dag


def _copy_operator(flow: FlowConfig) -> type[ReplicateOperator]:
    if not is_deferrable(flow):
        return ReplicateOperator
    for deferred in installed_features().at(Hook.DEFERRED_COPY):
        return cast(type[ReplicateOperator], deferred)
    _log.warning(
        "flow %s: the feature warm_spark is not installed, so mirror.airflow.deferrable has no effect: the copy needs "
        "a worker slot.",
        flow.flow,
    )
    return ReplicateOperator


def _timeout(flow: FlowConfig) -> timedelta | None:
    """Return when Airflow fails a DAG run; None for never. The copy ends before, so a run that takes longer hangs."""
    copying = flow.copy_settings
    if not copying.run_longest_seconds:
        return None
    return timedelta(seconds=max(copying.run_longest_seconds, copying.run_max_seconds)) + _SLACK


def _python(place: str, flow: str, config_path: str, **more: Any) -> StepOperator:
    given = {"flow": flow, "config_path": config_path}
    return StepOperator.of(f"mirror_lib.airflow.{place}", TASK_DOCUMENTATION[place.partition(":")[2]], given, **more)
