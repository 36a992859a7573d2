"""The task `define` of a backfill's DAG."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow import AirflowSkipException
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.backfill.airflow.form import BackfillChoices, Target
from mirror_lib.features.backfill.define import estimate, find_backfill, prepare_backfill, request_of
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import existing_ledger, open_ledger
from mirror_lib.planning.flow_clusters import FlowClusters

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig
    from mirror_lib.features.backfill.model import BackfillRequest
    from mirror_lib.features.backfill.plan import BackfillEstimate

_log = logging.getLogger(__name__)


def define(flow: str, config_path: str, params: Mapping[str, Any]) -> str:
    """Define the backfill, or find the one that the form names; return its name for the task that copies."""
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
