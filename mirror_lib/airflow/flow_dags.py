"""From the environment to DAGs: which configuration files Airflow serves, and what is said when one is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from mirror_lib.airflow.compatibility import DAG
from mirror_lib.airflow.flow_dag import build_flow_dag
from mirror_lib.airflow.loaded_files import load, uncollected
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.served_files import served_files
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.observe.airflow_runs import dag_id_of


def config_files(environment: Mapping[str, str], project: Path) -> list[Path]:
    """The files to serve, as `config.served_files` says."""
    return served_files(environment, project)


def build_flow_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """The DAGs that replicate, as `dags_of_flows` makes them."""
    return dags_of_flows(paths, only, dag_id=lambda flow: dag_id_of(flow.flow), build=build_flow_dag)


def dags_of_flows(
    paths: Iterable[Path],
    only: str | None,
    *,
    dag_id: Callable[[FlowConfig], str],
    build: Callable[[FlowConfig, Path], DAG],
    takes: Callable[[MirrorConfig, FlowConfig], bool] = lambda _config, _flow: True,
) -> dict[str, DAG]:
    """A DAG for every enabled flow of the files; with `only`, just the DAG of that id.

    A worker that asks for one DAG gets it even when another file is broken.

    Args:
        takes: whether a flow of a file has such a DAG.

    Raises:
        ConfigurationError: a file cannot be used, or two flows have the same DAG id. Every file's problems are named.
    """
    dags: dict[str, DAG] = {}
    origin: dict[str, Path] = {}
    problems: list[str] = []
    with uncollected():
        for path in paths:
            try:
                config = load(path)
            except MirrorError as error:
                problems.append(str(error))
                continue
            for flow in config.enabled_flows:
                if not takes(config, flow):
                    continue
                name = dag_id(flow)
                if name in origin:
                    problems.append(_clash(flow, name, path, origin[name]))
                    continue
                origin[name] = path
                if only in (None, name):
                    dags[name] = build(flow, path.absolute())
    if problems and not (only and dags):
        raise ConfigurationError("\n".join(problems))
    return dags


def _clash(flow: FlowConfig, dag_id: str, path: Path, other: Path) -> str:
    return (
        f"flow {flow.flow} of {path} and a flow of {other} both make the DAG {dag_id}. "
        f"Keep one of them, or rename a cluster alias."
    )
