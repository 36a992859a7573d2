"""Manual actions on DAG runs in Airflow while these copy, from its audit log. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mirror_lib.features.page.control import RunAct
from mirror_lib.ledger.rows import RunRow

_CLEARS: Final = frozenset({"clear_dag_run", "post_clear_task_instances"})
_MARKS: Final = frozenset({"patch_dag_run", "patch_task_instance"})
#: Names of the functions of Airflow 3.3's API that end a running task.
RUN_EVENTS: Final = _CLEARS | _MARKS | {"delete_dag_run"}


def act_of(event: str, task: str | None, extra: str | None, task_id: str) -> str | None:
    """Return what an event did to a task; None if nothing.

    Args:
        task: that the event is about, None for the whole run.
        extra: the request's body as JSON.
        task_id: the task in question.
    """
    try:
        body = json.loads(extra or "{}")
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    named = [task] if task is not None else body.get("task_ids")
    if (
        isinstance(named, list)
        and named
        and task_id not in {each[0] if isinstance(each, list) else each for each in named}
    ):
        return None
    if event in _CLEARS:
        return "cleared it"
    if event not in _MARKS:
        return "deleted it"
    state = body.get("new_state") or body.get("state")
    return f"marked it as {state}" if isinstance(state, str) else None


def what_ended(run: RunRow, dag_run: str | None, acts: Iterable[RunAct]) -> RunAct | None:
    """Return the last act on its DAG run during a run of the ledger; None if there was none."""
    until = run.finished_at or run.heartbeat_at
    met = [act for act in acts if act.dag_run == dag_run and _seconds(run.started_at, act.at) >= 0]
    return next((act for act in reversed(met) if _seconds(act.at, until) >= 0), None)


def _seconds(earlier: datetime, later: datetime) -> float:
    return (later - earlier).total_seconds()
