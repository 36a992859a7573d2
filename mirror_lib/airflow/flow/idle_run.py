"""The first task of a flow's DAG: it checks the flow and, if there is nothing to copy, does the whole run.

Each task costs a process, and before the copy also its seconds. So a run without records is done in this one, by the
code of the other tasks, and of a run with records all that precedes the copy; Airflow skips those tasks without
starting any. A step that fails here is left to its own task, which fails and is retried as usual.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import AirflowSkipException, DownstreamTasksSkipped
from mirror_lib.airflow.flow.check import CheckedFlow, check_flow
from mirror_lib.airflow.flow.form import OPTIONAL_STEPS, is_usual, job_arguments
from mirror_lib.airflow.flow.observe_task import observe_now
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY, report_text, steps_text
from mirror_lib.airflow.flow.sync_tasks import SKIPPED_KEY, SYNC_STEPS, do_sync_step, why_left_to_commits
from mirror_lib.airflow.heartbeats import EMITTED_KEY, check_heartbeats, emit
from mirror_lib.airflow.spark.outcome import xcom_value
from mirror_lib.copy.control_plane import has_only_heartbeats, replicate_control_plane
from mirror_lib.copy.job.report import JobReport
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.counted import counted
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.printable import Lines
from mirror_lib.sync.due_steps import why_not_due
from mirror_lib.sync.heartbeats.rules import emitting_flows
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.sync.observed import save_step
from mirror_lib.sync.topics.flow import plan_flow_topics
from mirror_lib.sync.topics.internal import InternalTopicState

if TYPE_CHECKING:
    from mirror_lib.copy.run_options import RunReport
    from mirror_lib.ledger.store import Ledger
    from mirror_lib.sync.topics.flow import TopicSync

_log = logging.getLogger(__name__)

_EMIT, _SYNC_TOPICS = "emit_heartbeats", "sync_topics"
_TRANSLATE_OFFSETS = "translate_offsets"
_HEARTBEATS, _OBSERVE, _REPORT = "heartbeats", "observe", "report"
#: All tasks after preflight.
_OTHER_TASKS = (*OPTIONAL_STEPS, "replicate", _OBSERVE, _REPORT)


def preflight(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """The task: check the flow, and do what is due before the copy; if there is nothing to copy, do the whole run.

    Tasks that are left without anything to do are skipped by Airflow.
    """
    choices = job_arguments(flow, config_path, params)
    checked = check_flow(choices)
    if not is_usual(params):
        _log.info("Flow %s: all tasks run: the run was triggered with its own parameters.", flow)
        return checked.to_dict()
    dag_run, instance = context["dag_run"], context["ti"]
    # When a whole run is cleared, its steps are repeated.
    at_once = instance.try_number > 1
    ready = _prepare(checked, at_once=at_once)
    instance.xcom_push(key=EMITTED_KEY, value=ready.emitted)
    done = None
    if why_not := _why_not_here(checked, ready):
        _log.info("Flow %s: %s.", flow, why_not)
    else:
        done = _done_here(checked, trigger_text(dag_run.dag_id, dag_run.run_id), ready.emitted, at_once=at_once)
    if done is None:
        _skip_before_copy(checked, ready, instance, at_once=at_once)
        return checked.to_dict()
    instance.xcom_push(key=REPORT_KEY, value=done.outcome)
    instance.xcom_push(key=STEP_KEY, value=done.steps)
    instance.xcom_push(key=SKIPPED_KEY, value=list(done.skipped_tasks))
    # A task that skips others cannot return a value.
    instance.xcom_push(key="return_value", value={**checked.to_dict(), "nothing_to_copy": True})
    _log.info("%s\n\n%s", Lines(report_text(flow, done.outcome, ())), Lines(steps_text(done.steps)))
    _log.info("Airflow skips %s. Clear a task to run it anyway.", ", ".join(done.skipped_tasks))
    raise DownstreamTasksSkipped(tasks=list(done.skipped_tasks))


def _skip_before_copy(checked: CheckedFlow, ready: _Ready, instance: Any, *, at_once: bool) -> None:
    """Let Airflow skip the tasks of a run with records that have nothing left to do.

    Raises:
        DownstreamTasksSkipped: there are some.
    """
    not_due = _steps_not_due(checked, at_once=at_once)
    whys = {**ready.skipped, **{step: outcome["skipped"] for step, outcome in not_due.items()}}
    if not whys:
        return
    instance.xcom_push(key=STEP_KEY, value=not_due)
    instance.xcom_push(key=SKIPPED_KEY, value=list(whys))
    instance.xcom_push(key="return_value", value=checked.to_dict())
    for task, why in whys.items():
        _log.info("Airflow skips %s: %s. Clear the task to run it anyway.", task, why)
    raise DownstreamTasksSkipped(tasks=list(whys))


@dataclass(frozen=True, slots=True)
class _Ready:
    """What was done, or had not to be done, before the copy."""

    #: As `emit` returns it; None if no heartbeats were written.
    emitted: dict[str, Any] | None
    #: Tasks before the copy that have nothing left to do -> why.
    skipped: Mapping[str, str]
    #: What `sync_topics` has to do; None if nothing.
    missing: str | None


@dataclass(slots=True)
class _Done:
    """The part of a run that was done here."""

    #: As `job_outcome.xcom_value` gives it.
    outcome: dict[str, Any]
    #: Outcomes of steps, by task.
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Tasks that have to run nevertheless.
    left: set[str] = field(default_factory=set)

    @property
    def skipped_tasks(self) -> tuple[str, ...]:
        """The tasks that have nothing left to do."""
        # The report decides whether the run has failed.
        needed = self.left | ({_REPORT} if self.left - {_OBSERVE} else set())
        return tuple(task for task in _OTHER_TASKS if task not in needed)


def _prepare(checked: CheckedFlow, *, at_once: bool) -> _Ready:
    """Write the heartbeats that are due, and look for missing target topics. What fails is left to its own task."""
    name, emitted = checked.settings.flow, None
    skipped: dict[str, str] = {}
    try:
        try:
            # Before the topics, since the first heartbeat creates one.
            emitted = emit(checked.config, emitting_flows(checked.config, name), at_once=at_once)
            skipped[_EMIT] = "preflight has written the heartbeats that were due"
        except AirflowSkipException as none:
            skipped[_EMIT] = str(none).rstrip(".")
        missing = _missing_topics(_topic_sync(checked, emitted))
        if missing is None:
            skipped[_SYNC_TOPICS] = "no target topic or partition is missing"
        return _Ready(emitted, skipped, missing)
    except MirrorError as error:
        _log.warning("Flow %s: its tasks will retry: %s", name, error)
        return _Ready(emitted, skipped, "preflight could not write heartbeats or read all topics")


def _why_not_here(checked: CheckedFlow, ready: _Ready) -> str | None:
    """Return why Spark has to copy; None if the plan has nothing to copy."""
    copying = checked.settings.copy_settings
    if copying.run_poll_seconds and copying.run_max_seconds:
        return "mirror.run.poll.seconds makes the copy poll for new records"
    if checked.plan is None:
        return "there is no plan"
    if checked.plan.problems:
        return f"{counted(len(checked.plan.problems), 'partition or topic has', 'partitions or topics have')} a problem"
    if not has_only_heartbeats(checked.settings, checked.plan):
        return f"{counted(len(checked.plan.partitions), 'partition has', 'partitions have')} records to copy"
    return ready.missing


def _done_here(checked: CheckedFlow, trigger: str, emitted: Mapping[str, Any] | None, *, at_once: bool) -> _Done | None:
    """Do a run without records; return None if it needs the other tasks after all."""
    name = checked.settings.flow
    try:
        with open_ledger(checked.config) as ledger:
            report = _replicate(checked, ledger, trigger)
            if report is None:
                return None
            done = _Done(xcom_value(JobReport.from_dict(report.to_dict())))
            _do_steps(checked, ledger, trigger, done, emitted, at_once=at_once)
            try:
                observe_now(checked.settings, ledger, report.run_id)
            except MirrorError as error:
                _log.warning("Flow %s could not be observed; task %s will retry: %s", name, _OBSERVE, error)
                done.left.add(_OBSERVE)
            return done
    except MirrorError as error:
        _log.warning("Flow %s: replicate will retry: %s", name, error)
        return None


def _steps_not_due(checked: CheckedFlow, *, at_once: bool) -> dict[str, dict[str, Any]]:
    """Return outcomes of the sync steps that have nothing to do in a run with records, by task.

    Groups are translated after the copy, when their interval may have passed: they are included only if switched off.
    """
    found = {}
    with open_ledger(checked.config) as ledger:
        for task, step in SYNC_STEPS.items():
            only_if_off = at_once or step in (SyncStep.CHECKPOINTS, SyncStep.GROUP_OFFSETS)
            why_not = why_not_due(checked.settings, step, ledger, datetime.now(UTC), at_once=only_if_off)
            if why_not is not None:
                found[task] = _not_done(why_not)
                save_step(ledger, str(checked.settings.flow), task, found[task])
        if why_left := why_left_to_commits(checked.settings, ledger, at_once=at_once):
            found[_TRANSLATE_OFFSETS] = _not_done(why_left)
    return found


def _topic_sync(checked: CheckedFlow, emitted: Mapping[str, Any] | None) -> TopicSync | None:
    """Return what `sync_topics` would do: what was planned, unless a heartbeat has created a topic since."""
    source = checked.settings.flow.source
    written = {each["topic"] for each in (emitted or {}).get("emitted", ()) if each["cluster"] == source}
    if checked.topic_sync is None or written <= checked.source_topics:
        return checked.topic_sync
    with open_ledger(checked.config) as ledger:
        found = plan_flow_topics(checked.settings, checked.topology, ledger)
    for notice in set(found.warnings) - checked.warnings:
        _log.warning("Flow %s: %s", checked.settings.flow, notice)
    return found


def _missing_topics(planned: TopicSync | None) -> str | None:
    """Return what `sync_topics` has to do; None if nothing."""
    if planned is None:
        return "preflight could not read all topics"
    missing = [topic.name for topic in planned.internal if topic.state is InternalTopicState.MISSING]
    if missing:
        return f"internal topics are missing: {', '.join(missing)}"
    if planned.plan.create or planned.plan.grow or planned.plan.conflicts:
        return "target topics have to be created or get more partitions, or are in conflict"
    return None


def _replicate(checked: CheckedFlow, ledger: Ledger, trigger: str) -> RunReport | None:
    """Do the run, in the ledger like any other; return None if there is more to copy by now, or it did not end well."""
    # One round: later records are for the next run.
    report = replicate_control_plane(
        checked.settings, ledger=ledger, options=RunOptions(trigger=trigger, max_seconds=0.0)
    )
    if report is None:
        _log.info("Flow %s: new records have arrived meanwhile.", checked.settings.flow)
        return None
    for warning in set(report.warnings) - checked.warnings:
        _log.warning("Flow %s: %s", checked.settings.flow, warning)
    if report.exit_code:
        _log.warning(
            "Flow %s: heartbeats were not copied; replicate will retry: %s", checked.settings.flow, report.errors
        )
        return None
    return report


def _do_steps(
    checked: CheckedFlow,
    ledger: Ledger,
    trigger: str,
    done: _Done,
    emitted: Mapping[str, Any] | None,
    *,
    at_once: bool,
) -> None:
    """Do the steps that are due. One that fails is left to its own task."""
    skipped = why_left_to_commits(checked.settings, ledger, at_once=at_once)
    for step in (*SYNC_STEPS, _HEARTBEATS):
        if step == _TRANSLATE_OFFSETS and skipped is not None:
            done.steps[step] = _not_done(skipped)
            continue
        try:
            if step == _HEARTBEATS:
                outcome, _ = check_heartbeats(checked.settings, checked.topology, ledger, emitted)
            else:
                outcome = do_sync_step(step, checked.settings, checked.topology, ledger, by=trigger, at_once=at_once)
        except MirrorError as error:
            _log.warning("Flow %s: %s failed; its task will retry: %s", checked.settings.flow, step, error)
            done.left.add(step)
            continue
        if outcome["failed"]:
            problems = "; ".join(outcome["problems"])
            _log.warning("Flow %s: %s failed; its task will retry: %s", checked.settings.flow, step, problems)
            done.left.add(step)
            continue
        done.steps[step] = outcome


def _not_done(why: str) -> dict[str, Any]:
    """The outcome of a step that has nothing to do."""
    return {"skipped": why, "failed": 0, "problems": []}
