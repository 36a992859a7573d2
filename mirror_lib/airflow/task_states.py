"""States of other tasks of the same DAG run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Final states, unless the task is cleared.
ENDED_STATES = frozenset({"success", "failed", "upstream_failed", "skipped", "removed"})


def task_state(context: Mapping[str, Any], task_id: str) -> str | None:
    """Return the state of a task of this run; None if it has none yet."""
    run = context["dag_run"]
    found = context["ti"].get_task_states(dag_id=run.dag_id, task_ids=[task_id], run_ids=[run.run_id])
    state = found.get(run.run_id, {}).get(task_id)
    return None if state is None else str(getattr(state, "value", state))
