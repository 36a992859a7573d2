"""What happens when a DAG run takes longer than `mirror.airflow.deadline.seconds`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AsyncCallback, DeadlineAlert, DeadlineReference
from mirror_lib.config import FlowConfig

_log = logging.getLogger(__name__)

#: `action` of the ledger's audit entries.
DEADLINE_MISSED = "deadline-missed"


def deadline_alert(flow: FlowConfig, config_path: str) -> DeadlineAlert | None:
    """The alert of a flow's DAG, None when the file sets no deadline.

    It runs in the triggerer, which every Airflow has that uses deadlines at all: not every executor takes callbacks.
    """
    seconds = flow.airflow_deadline_seconds
    if not seconds:
        return None
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(seconds=seconds),
        callback=AsyncCallback(
            tell_deadline_missed, kwargs={"flow": str(flow.flow), "config_path": config_path, "seconds": seconds}
        ),
        name=f"{flow.flow} takes longer than {seconds:g} s",
    )


async def tell_deadline_missed(
    flow: str, config_path: str, seconds: float, context: Mapping[str, Any] | None = None
) -> None:
    """Called by Airflow once for each run that is late: logs it, and notes it in the ledger's audit."""
    run = (context or {}).get("dag_run", {})
    run_id = str(run.get("dag_run_id") or run.get("run_id") or "unknown")
    _log.error(
        "Flow %s: DAG run %s has not ended %g seconds after it was queued (mirror.airflow.deadline.seconds).",
        flow,
        run_id,
        seconds,
    )
    # The ledger blocks, and the triggerer has one loop for all.
    await asyncio.to_thread(_note, flow, config_path, run_id, seconds)


def _note(flow: str, config_path: str, run_id: str, seconds: float) -> None:
    from mirror_lib.config import load
    from mirror_lib.config.secrets import without_lookups
    from mirror_lib.errors import MirrorError
    from mirror_lib.ledger import open_ledger

    try:
        # In the triggerer, for which Airflow keeps no connections; the ledger's address is none of them.
        with without_lookups():
            config = load(Path(config_path))
        with open_ledger(config) as ledger:
            ledger.audits.note(
                by="airflow", action=DEADLINE_MISSED, subject=run_id, flow=flow, detail={"seconds": seconds}
            )
    except MirrorError as error:
        # The alert is told already; it must not fail for want of its own record.
        _log.warning("Flow %s: the ledger does not take the note of the missed deadline: %s", flow, error)
