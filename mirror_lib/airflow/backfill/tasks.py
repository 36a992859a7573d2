"""Tasks of a backfill's DAG: define and estimate it, then submit its Spark job."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.backfill.form import BackfillChoices, Target
from mirror_lib.airflow.compatibility import AirflowSkipException, Context
from mirror_lib.airflow.flow import ReplicateOperator
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.observe import trigger_text
from mirror_lib.relay.job import ASK, JobArguments

if TYPE_CHECKING:
    from mirror_lib.config import FlowConfig
    from mirror_lib.relay.backfill import BackfillEstimate, BackfillRequest

_log = logging.getLogger(__name__)


def define(flow: str, config_path: str, params: Mapping[str, Any]) -> str:
    """Resolves topics, times and offsets, once for all runs; logs the estimate and creates the target topics.

    Returns the backfill's name for the task that copies.
    """
    from mirror_lib.ledger import existing_ledger, load_flow_as_it_runs, open_ledger
    from mirror_lib.relay.backfill import estimate, find_backfill, prepare_backfill
    from mirror_lib.relay.planning import FlowClusters

    choices = BackfillChoices.from_params(params)
    config, settings = load_flow_as_it_runs(Path(config_path), flow)
    request = _request(settings, choices)
    with FlowClusters.connect(settings) as clusters:
        if choices.dry_run:
            with existing_ledger(config) or nullcontext() as known:
                found, defined = find_backfill(settings, clusters, known, request, choices.name)
                _log_estimate(estimate(settings, clusters, known, found, defined=defined))
            raise AirflowSkipException("a dry run copies nothing.")
        with open_ledger(config) as ledger:
            expected, topics = prepare_backfill(settings, clusters, ledger, request, choices.name)
    for conflict in topics.plan.conflicts if topics is not None else ():
        _log.error("Flow %s: %s", flow, conflict)
    _log_estimate(expected)
    return expected.backfill.name


def _request(flow: FlowConfig, choices: BackfillChoices) -> BackfillRequest | None:
    from mirror_lib.relay.backfill import request_of

    if not choices.topics and choices.name:
        return None
    if choices.target is not Target.SAME and not choices.target_name:
        raise ConfigurationError(
            "target_name is empty.", action="Enter the name of the other topic, or the suffix of the topic names."
        )
    return request_of(
        flow,
        choices.topics,
        choices.begin,
        choices.end,
        into=choices.target_name if choices.target is Target.TOPIC else None,
        into_suffix=choices.target_name if choices.target is Target.SUFFIX else None,
        into_same=choices.target is Target.SAME,
    )


def _log_estimate(expected: BackfillEstimate) -> None:
    seconds = expected.seconds
    _log.info(
        "Backfill %s: at most %d records, about %.1f MB left to copy in %d partitions; %s.",
        expected.backfill.name,
        expected.offsets,
        expected.bytes / 1e6,
        sum(each.offsets > 0 for each in expected.ranges),
        "duration unknown" if seconds is None else f"about {seconds / 60:.1f} minutes",
    )


class BackfillOperator(ReplicateOperator):
    """Submits the Spark job of a flow for the backfill that the previous task defined."""

    def __init__(self, *, defined_by: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.defined_by = defined_by

    def _command_line(self, context: Context, report: Path) -> list[str]:
        choices = BackfillChoices.from_params(context["params"])
        name = context["ti"].xcom_pull(task_ids=self.defined_by)
        if not name:
            # Without a name the job would be a run of the flow itself.
            dag_id = context["dag"].dag_id
            raise ConfigurationError(
                f"the task {self.defined_by} has not defined a backfill in this run: its state was set manually, or "
                "its result was deleted.",
                where=Where(flow=self.flow),
                action=f"Nothing was copied. Clear the task {self.defined_by}, or trigger the DAG {dag_id} again.",
            )
        return JobArguments(
            config=Path(self.config_path),
            flow=self.flow,
            trigger=trigger_text(context["dag"].dag_id, context["run_id"]),
            report=report,
            tasks=choices.tasks,
            gaps="accept" if choices.accept_gaps else ASK,
            backfill=name,
            max_bytes=choices.max_bytes,
            bytes_per_second=choices.bytes_per_second,
        ).command_line()
