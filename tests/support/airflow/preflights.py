"""The first task of a flow's DAG, carried out in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mirror_lib.airflow.compatibility import DownstreamTasksSkipped
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.airflow.flow.idle_run import preflight
from mirror_lib.config.loader import load

_USUAL: dict[str, Any] = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}
_DAG_RUN = SimpleNamespace(dag_id="mirror__A__B", run_id="scheduled 1")


@dataclass
class Preflight:
    """A preflight: the tasks that it has Airflow skip, and what it hands over."""

    skipped: set[str]
    pushed: dict[str, Any]


def run_preflight(path: Path, *, try_number: int = 1, **choices: Any) -> Preflight:
    """Of the flow A->B of a file, with some choices of the trigger form."""
    pushed: dict[str, Any] = {}
    instance = SimpleNamespace(try_number=try_number, xcom_push=lambda key, value: pushed.update({key: value}))
    try:
        preflight("A->B", str(path), {**_USUAL, **choices}, ti=instance, dag_run=_DAG_RUN)
    except DownstreamTasksSkipped as skip:
        return Preflight(set(skip.tasks), pushed)
    return Preflight(set(), pushed)


def other_tasks(path: Path) -> set[str]:
    """All tasks of the flow's DAG but preflight."""
    return set(build_flow_dag(load(path).flow("A->B"), path).task_ids) - {"preflight"}
