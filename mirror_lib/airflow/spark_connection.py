"""Where Spark jobs run: the Airflow connection, and the local default when there is none."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from mirror_lib.airflow.compatibility import AirflowNotFoundException, BaseHook
from mirror_lib.errors import ConfigurationError
from mirror_lib.relay.submission import LOCAL_MASTER, checkout_path, find_spark_home, spark_submit

_log = logging.getLogger(__name__)


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


def master_of(conn_id: str) -> str:
    """The master URL that the job of a flow with this connection gets."""
    master = spark_master(conn_id)
    return LOCAL_MASTER if master is None else master


def runs_driver_elsewhere(conn_id: str) -> bool:
    """Whether the connection has the driver started by the cluster (`deploy-mode`), far from our environment."""
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return False
    return bool(connection.extra_dejson.get("deploy-mode") == "cluster")


@contextlib.contextmanager
def submit_environment(conn_id: str, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Process environment in which `spark-submit` is found and a missing connection means a local master.

    Without this the provider silently turns a missing connection into `--master yarn` (its `SparkSubmitHook`), and
    a worker started by its full path does not see the `spark-submit` that its own Python has.

    Args:
        conn_id: the Airflow connection.
        more: variables for the child that must not become settings of Spark, as the operator's `env_vars` do on YARN
            and Kubernetes.
    """
    changes: dict[str, str] = {}
    if spark_master(conn_id) is None:
        changes[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps({"conn_type": "spark", "host": LOCAL_MASTER})
    if shutil.which("spark-submit") is None:
        # A connection may name another program (`spark-binary`): then this one is not needed.
        with contextlib.suppress(ConfigurationError):
            changes["PATH"] = os.pathsep.join(
                [str(spark_submit(find_spark_home(os.environ)).parent), os.environ.get("PATH", os.defpath)]
            )
    with _environment({**changes, **checkout_path(os.environ), **more}):
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
