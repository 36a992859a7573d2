"""From the environment to DAGs: the configuration files that Airflow serves, and the DAGs of their flows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from mirror_lib.airflow.compatibility import DAG, is_external
from mirror_lib.airflow.files.broken_dags import failing_dag, mark
from mirror_lib.airflow.files.loaded_files import load_readable, pause_gc
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.config.file.served import served_files
from mirror_lib.config.model import AirflowExecution, FlowConfig, MirrorConfig
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.past_runs.airflow_runs import dag_id_of

_log = logging.getLogger(__name__)


def config_files(environment: Mapping[str, str], project: Path) -> list[Path]:
    """Return the files to serve, see `config.served_files`."""
    return served_files(environment, project)


def build_flow_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the DAGs that replicate, as `dags_of_flows` makes them."""
    return dags_of_flows(paths, only, dag_id=lambda flow: dag_id_of(flow.flow), build=build_flow_dag)


def dags_of_flows(
    paths: Iterable[Path],
    only: str | None,
    *,
    dag_id: Callable[[FlowConfig], str],
    build: Callable[[FlowConfig, Path], DAG],
    takes: Callable[[MirrorConfig, FlowConfig], bool] = lambda _config, _flow: True,
) -> dict[str, DAG]:
    """Return a DAG for every enabled flow of the files; with `only`, just the DAG of that id.

    A broken file affects no other. Its readable flows get DAGs, which are marked; `broken_files` raises its problems. A
    flow whose DAG cannot be built gets a DAG that fails. If two flows have the same DAG id, the first gets it.

    Args:
        takes: True if a flow of a file has such a DAG.

    Raises:
        ConfigurationError: no file makes the requested DAG, and some cannot be read; it names those.
    """
    dags: dict[str, DAG] = {}
    taken: set[str] = set()
    problems: list[str] = []
    with pause_gc():
        for path in paths:
            try:
                config, broken = load_readable(path)
            except MirrorError as error:
                problems.append(str(error))
                continue
            if broken is not None:
                problems.append(str(broken))
            for flow in config.enabled_flows:
                name = dag_id(flow)
                if name in taken or not takes(config, flow) or not runs_here(flow):
                    continue
                taken.add(name)
                if only in (None, name):
                    dags[name] = _build_or_report(name, flow, path.absolute(), build)
                    if broken is not None:
                        mark(dags[name], broken)
    if only and not dags and problems:
        # The process of a task: no other DAGs are affected, and its log should say why there is no DAG.
        raise ConfigurationError("\n".join(problems))
    return dags


def runs_here(flow: FlowConfig) -> bool:
    """Return True if this kind of execution runs the flow's DAGs (`mirror.airflow.execution`)."""
    return is_external() == (flow.airflow_execution is AirflowExecution.EXTERNAL)


def _build_or_report(dag_id: str, flow: FlowConfig, path: Path, build: Callable[[FlowConfig, Path], DAG]) -> DAG:
    try:
        return build(flow, path)
    except Exception as error:
        # Any exception: the other flows keep their DAGs.
        _log.exception("cannot create the DAG %s of %s", dag_id, path)
        text = f"{type(error).__name__}: {error}"
        return failing_dag(dag_id, f"Cannot create the DAG of flow {flow.flow} of {path}", text)
