"""Problems of configuration files, shown without removing working DAGs.

Airflow drops all DAGs of a DAG file that raises. So the files that make DAGs raise nothing for a broken configuration
file: they make the DAGs that can be read, marked, and runs of these fail with the file's problems.
`dags/broken_files.py`, which makes no DAG, raises the problems.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mirror_lib.airflow.compatibility import DAG
from mirror_lib.airflow.files.broken_dags import failing_dag
from mirror_lib.airflow.files.loaded_files import load_readable
from mirror_lib.airflow.heartbeats import heartbeat_dag_id
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.past_runs.airflow_runs import BROKEN_FILES_DAG, dag_id_of
from mirror_lib.sync.heartbeats.rules import emitting_kinds

_NONE_LEFT = "Airflow has no DAGs of this file until this is fixed; runs that have started continue then."


def raise_for_broken_files(paths: Iterable[Path]) -> None:
    """Raise the problems of configuration files, in a DAG file that makes no DAG.

    Raises:
        ConfigurationError: a file cannot be used, or two files make the same DAG. Every file's problems are named, and
            which of its DAGs still exist.
    """
    if reports := problems_of(paths):
        raise ConfigurationError("\n".join(reports))


def problems_of(paths: Iterable[Path]) -> list[str]:
    """Return the problems of files, each and together."""
    reports: list[str] = []
    made_of: dict[str, Path] = {}
    for path in paths:
        try:
            config, broken = load_readable(path)
        except MirrorError as error:
            reports.append(f"{error}\n  {_NONE_LEFT}")
            continue
        flows = {dag_id_of(flow.flow): f"flow {flow.flow}" for flow in config.enabled_flows}
        if broken is not None:
            reports.append(f"{broken}\n  {_what_stays(flows)}")
        heartbeats = {heartbeat_dag_id(path): "the heartbeats"} if emitting_kinds(config) else {}
        for dag_id, what in (flows | heartbeats).items():
            other = made_of.setdefault(dag_id, path)
            if other is not path:
                reports.append(
                    f"{what} of {path}: {other} already defines the DAG {dag_id}. "
                    "Keep one of them, or rename a cluster alias or the file."
                )
    return reports


def broken_files_dag(reports: Iterable[str]) -> DAG:
    """Return a DAG that fails with the problems, for DAG files that make all DAGs and so must not raise."""
    return failing_dag(BROKEN_FILES_DAG, "Broken configuration files", "\n".join(reports))


def _what_stays(dag_ids: Iterable[str]) -> str:
    names = ", ".join(dag_ids)
    if not names:
        return _NONE_LEFT
    return f"Until this is fixed, every run of the DAGs of this file fails. Its remaining DAGs: {names}."
