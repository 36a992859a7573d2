"""A DAG that only writes heartbeats, at its own interval.

MM2 writes one heartbeat per second (`emit.heartbeats.interval.seconds`). A scheduler of tasks cannot do that: starting
a task takes about as long, and each task run leaves a row and a log. So a run of a flow writes its own heartbeat before
it copies, and this DAG writes the heartbeats of all pairs at most once a minute, for clusters whose heartbeats are
monitored by others too. To emit at the rate of MM2, run the process `mirror heartbeat emit --every 1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from mirror_lib.airflow.compatibility import DAG, is_external
from mirror_lib.airflow.dag_defaults import new_dag
from mirror_lib.airflow.files import load_readable, mark, runs_here
from mirror_lib.airflow.python_task import PythonTask
from mirror_lib.airflow.schedule import RUN_TYPES
from mirror_lib.config.model import MirrorConfig
from mirror_lib.errors import MirrorError
from mirror_lib.sync.heartbeats.rules import emitting_kinds

_SHORTEST_INTERVAL_SECONDS = 60
_TIMEOUT = timedelta(minutes=5)


def build_heartbeat_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return a DAG for every file in which some pair of clusters emits heartbeats; with `only`, just the DAG of that
    id.

    `broken_files` reports broken files.
    """
    dags: dict[str, DAG] = {}
    for path in paths:
        try:
            config, broken = load_readable(path)
        except MirrorError:
            continue
        name = heartbeat_dag_id(path)
        # One execution runs it: the external one if that runs all flows of the file.
        here = (
            all(runs_here(flow) for flow in config.enabled_flows)
            if is_external()
            else any(runs_here(flow) for flow in config.enabled_flows)
        )
        if here and name not in dags and emitting_kinds(config) and only in (None, name):
            dags[name] = build_heartbeat_dag(config, path.absolute())
            if broken is not None:
                mark(dags[name], broken)
    return dags


def build_heartbeat_dag(config: MirrorConfig, path: Path) -> DAG:
    """Return the DAG of one file: a single short task."""
    with new_dag(
        heartbeat_dag_id(path),
        f"Heartbeats of {path.name}",
        "Writes the heartbeats of all pairs of clusters",
        __doc__,
        schedule=heartbeat_interval(config),
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        dagrun_timeout=_TIMEOUT,
        tags={"heartbeats"},
    ) as dag:
        PythonTask.of(
            "mirror_lib.airflow.heartbeats.tasks:emit_all_heartbeats",
            "Writes a heartbeat for every pair of clusters of the file to the target of the pair.",
            {"config_path": str(path)},
            execution_timeout=_TIMEOUT,
        )
    return dag


def heartbeat_dag_id(path: Path) -> str:
    """Return the id of a file's DAG, by the file's name."""
    return f"mirror_heartbeats__{re.sub(r'[^a-zA-Z0-9_.-]', '_', path.stem)}"


def heartbeat_interval(config: MirrorConfig) -> timedelta:
    """Return the shortest `emit.heartbeats.interval.seconds` of the file, but at least a minute."""
    seconds = min(pair.emit_heartbeats_interval_seconds for pair in emitting_kinds(config))
    return timedelta(seconds=max(seconds, _SHORTEST_INTERVAL_SECONDS))
