"""Where Spark jobs run: the Airflow connection, and the local default when there is none."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import site
import sys
from collections.abc import Iterator
from pathlib import Path

import mirror_lib
from mirror_lib.airflow.compatibility import AirflowNotFoundException, BaseHook

_log = logging.getLogger(__name__)

LOCAL_MASTER = "local[*]"


def spark_master(conn_id: str) -> str | None:
    """The master URL of an Airflow connection, or None when Airflow has no such connection.

    The rules are those of the provider's `SparkSubmitHook._resolve_connection`: a port makes `host:port`.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None
    host = connection.host or ""
    return f"{host}:{connection.port}" if connection.port else host


def describe_master(conn_id: str) -> str:
    """One sentence for the log: where the job of this flow will run, and how to change that."""
    master = spark_master(conn_id)
    if master is not None:
        return f"Spark runs on {master} (Airflow connection {conn_id})."
    return (
        f"Airflow has no connection {conn_id}: Spark runs on this worker as {LOCAL_MASTER}. "
        f"To use a cluster, create the connection {conn_id} of type spark with the master as its host."
    )


def runs_here(master: str | None) -> bool:
    """Whether executors share this machine and therefore this Python."""
    return master is None or master.startswith("local")


@contextlib.contextmanager
def submit_environment(conn_id: str) -> Iterator[None]:
    """Process environment in which `spark-submit` is found and a missing connection means a local master.

    Without this the provider silently turns a missing connection into `--master yarn` (its `SparkSubmitHook`), and
    a worker started by its full path does not see the `spark-submit` beside its own Python.
    """
    changes: dict[str, str] = {}
    if spark_master(conn_id) is None:
        changes[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps({"conn_type": "spark", "host": LOCAL_MASTER})
    if shutil.which("spark-submit") is None:
        changes["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    root = str(Path(mirror_lib.__file__).parents[1])
    if root not in site.getsitepackages():
        # A checkout that is only on this process' path: the driver is another process.
        changes["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    with _environment(changes):
        yield


@contextlib.contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
