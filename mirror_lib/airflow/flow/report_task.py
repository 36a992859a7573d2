"""The task `report` of a flow's DAG: it decides whether the DAG run has failed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY, failed_steps, report_text, steps_text
from mirror_lib.airflow.task_states import task_state
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.past_runs.run_totals import topic_totals
from mirror_lib.printable import Lines

_log = logging.getLogger(__name__)
#: Runs of one DAG run: one for each attempt of `replicate`.
_RUNS_LOOKED_AT = 50
#: Steps of a run in addition to the copy, in the order of the report.
REPORTED_STEPS = ("sync_topic_configs", "sync_topic_acls", "translate_offsets", "sync_group_offsets", "heartbeats")


def report(flow: str, config_path: str, **context: Any) -> dict[str, Any]:
    """Print what the DAG run copied and did.

    Raises:
        AirflowFailException: a part is incomplete, so that the DAG run fails.
        AirflowSkipException: another run of the flow copies.
    """
    config, _ = load_flow_as_it_runs(Path(config_path), flow)
    instance, dag_run = context["ti"], context["dag_run"]
    outcome = instance.xcom_pull(task_ids="replicate", key=REPORT_KEY)
    steps = {step: instance.xcom_pull(task_ids=step, key=STEP_KEY) for step in REPORTED_STEPS}
    # Steps that preflight did or skipped. A cleared task reports for itself, even if it has no outcome.
    if outcome is None and task_state(context, "replicate") == "skipped":
        outcome = instance.xcom_pull(task_ids="preflight", key=REPORT_KEY)
    done_before = instance.xcom_pull(task_ids="preflight", key=STEP_KEY) or {}
    steps = {
        step: done_before[step]
        if done is None and step in done_before and task_state(context, step) == "skipped"
        else done
        for step, done in steps.items()
    }
    ledger = open_ledger(config)
    trigger = trigger_text(dag_run.dag_id, dag_run.run_id)
    # Oldest first: the last row of a partition decides whether it failed.
    runs = ledger.runs(flow, _RUNS_LOOKED_AT, trigger=trigger)[::-1]
    rows = [row for run in runs for row in ledger.partition_runs(run.id)]
    totals = topic_totals(rows)
    # Topics that could not be synced do not fail the run here: the copy reports their partitions.
    topics = instance.xcom_pull(task_ids="sync_topics", key="return_value")
    shown = steps if topics is None else {"sync_topics": topics, **steps}
    _log.info("%s\n\n%s", Lines(report_text(flow, outcome, totals)), Lines(steps_text(shown)))
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
