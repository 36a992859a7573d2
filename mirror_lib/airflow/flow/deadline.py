"""The alert for a DAG run that takes longer than `mirror.airflow.deadline.seconds`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AsyncCallback, DeadlineAlert, DeadlineReference, make_deadline
from mirror_lib.config.model import FlowConfig

_log = logging.getLogger(__name__)

#: `action` of the ledger's audit entries.
DEADLINE_MISSED = "deadline-missed"


def deadline_alert(flow: FlowConfig, config_path: str) -> DeadlineAlert | None:
    """Return the alert of a flow's DAG, None if the file sets no deadline.

    It runs in the triggerer, which exists wherever deadlines are used: not every executor supports callbacks.
    """
    seconds = flow.airflow_deadline_seconds
    if not seconds:
        return None
    return make_deadline(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(seconds=seconds),
        callback=AsyncCallback(
            tell_deadline_missed, kwargs={"flow": str(flow.flow), "config_path": config_path, "seconds": seconds}
        ),
        name=f"run of {flow.flow} took longer than {seconds:g} s",
    )


async def tell_deadline_missed(
    flow: str, config_path: str, seconds: float, context: Mapping[str, Any] | None = None
) -> None:
    """Called by Airflow once for each late run: log it, and record it in the ledger's audit log.

    Airflow 3.3 also calls it for runs that have failed before their deadline.
    """
    run = (context or {}).get("dag_run", {})
    run_id = str(run.get("dag_run_id") or run.get("run_id") or "unknown")
    if _has_ended_in_time(run, seconds):
        _log.info("Flow %s: DAG run %s has ended before its deadline, as %s.", flow, run_id, run.get("state"))
        return
    _log.error(
        "Flow %s: DAG run %s missed its deadline: not finished %g s after it was queued "
        "(mirror.airflow.deadline.seconds).",
        flow,
        run_id,
        seconds,
    )
    # Ledger calls block, and the triggerer has one event loop for all.
    await asyncio.to_thread(_note, flow, config_path, run_id, seconds)


def _has_ended_in_time(run: Mapping[str, Any], seconds: float) -> bool:
    queued, ended = run.get("queued_at"), run.get("end_date")
    if not queued or not ended:
        return False
    return datetime.fromisoformat(ended) - datetime.fromisoformat(queued) <= timedelta(seconds=seconds)


def _note(flow: str, config_path: str, run_id: str, seconds: float) -> None:
    from mirror_lib.config.loader import load
    from mirror_lib.config.secrets.lookup_context import without_lookups
    from mirror_lib.errors import MirrorError
    from mirror_lib.ledger.location import open_ledger

    try:
        # Airflow has no connections for callbacks in the triggerer; the ledger's URL is not one of them.
        with without_lookups():
            config = load(Path(config_path))
        with open_ledger(config) as ledger:
            ledger.audits.note(
                by="airflow", action=DEADLINE_MISSED, subject=run_id, flow=flow, detail={"seconds": seconds}
            )
    except MirrorError as error:
        # The alert is logged already; it must not fail because it cannot be recorded.
        _log.warning("Flow %s: the missed deadline could not be recorded in the audit log: %s", flow, error)
