"""The Airflow connection that says where Spark jobs run, and the local default without one."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from mirror_lib.airflow.compatibility import AirflowNotFoundException, BaseHook, is_external, mask_secret
from mirror_lib.airflow.spark.submission import check_submission, master_url, shown_master
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError
from mirror_lib.spark.connect_server import REMOTE_VARIABLE, SCHEME, ConnectAddress, is_connect
from mirror_lib.spark.submit import LOCAL_MASTER, checkout_path, find_spark_home, spark_defaults, spark_submit

_log = logging.getLogger(__name__)
#: `SparkConnectHook.conn_type`.
_CONNECT_TYPE = "spark_connect"


def spark_master(conn_id: str) -> str | None:
    """Return the master URL of an Airflow connection, or None if Airflow has no such connection.

    For a Spark Connect server it is the address, without secrets.
    """
    connection = _connection(conn_id)
    if connection is None:
        return None
    if _means_connect(connection.conn_type, connection.host or ""):
        return str(_connect_address(connection))
    return master_url(connection)


def connect_address(conn_id: str) -> ConnectAddress | None:
    """Return the Spark Connect server of an Airflow connection; None if it names none, and jobs are submitted.

    A connection of type `spark_connect` names one, and any whose host begins with `sc://`. Airflow masks its token from
    then on.

    Raises:
        ConfigurationError: the connection has no valid address.
    """
    connection = _connection(conn_id)
    if connection is None or not _means_connect(connection.conn_type, connection.host or ""):
        return None
    address = _connect_address(connection)
    if address.token is not None:
        for text in {address.token, quote(address.token, safe="")}:
            mask_secret(text)
    return address


def _connection(conn_id: str) -> Any:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None


def _means_connect(conn_type: str | None, host: str) -> bool:
    return conn_type == _CONNECT_TYPE or is_connect(host)


def _connect_address(connection: Any) -> ConnectAddress:
    """Follow the rules of the provider's `SparkConnectHook.get_connection_url`; the host may be a whole address,
    too.
    """
    host = str(connection.host or "")
    address = ConnectAddress.parse(host if is_connect(host) else f"{SCHEME}{host}")
    if connection.port:
        address = replace(address, port=int(connection.port))
    use_ssl = connection.extra_dejson.get("use_ssl")
    more = {
        "user_id": connection.login,
        "token": connection.password,
        "use_ssl": None if use_ssl is None else str(use_ssl).lower(),
    }
    return address.with_parameters(**{name: value for name, value in more.items() if value})


def check_connect_server(conn_id: str) -> None:
    """Check that the server listens, if the connection names one.

    Raises:
        ConfigurationError: the connection has no valid address.
        SparkUnreachableError: nothing listens there.
    """
    address = connect_address(conn_id)
    if address is not None:
        address.require_listener()


def check_submitter(conn_id: str) -> str | None:
    """Check that jobs can be submitted with the connection, if it exists and names no Spark Connect server.

    Returns:
        a warning, None if there is none.

    Raises:
        ConfigurationError: no job can be submitted.
    """
    connection = _connection(conn_id)
    if connection is None or _means_connect(connection.conn_type, connection.host or ""):
        return None
    return check_submission(conn_id, connection, spark_defaults(os.environ), by_provider=not is_external())


def is_deferrable(flow: FlowConfig) -> bool:
    """True if the copy needs no worker slot: an Airflow without this package has no trigger that waits for it."""
    return flow.airflow_deferrable and not is_external()


def describe_master(conn_id: str) -> str:
    """Return one sentence for the log: where the job of this flow will run, and how to change that."""
    master = spark_master(conn_id)
    if master is not None and is_connect(master):
        return f"Spark runs in a session of the Spark Connect server {master} (Airflow connection {conn_id})."
    if master is not None:
        return f"Spark runs on {shown_master(master)} (Airflow connection {conn_id})."
    return (
        f"Airflow has no connection {conn_id}: Spark runs on this worker as {LOCAL_MASTER}. "
        f"To use a cluster, create the connection {conn_id} of type spark with the master as its host."
    )


def master_of(conn_id: str) -> str:
    """Return the master URL for the job of a flow with this connection."""
    master = spark_master(conn_id)
    return LOCAL_MASTER if master is None else master


def runs_driver_elsewhere(conn_id: str) -> bool:
    """Return True if the cluster starts the driver (`deploy-mode`), outside of this environment."""
    connection = _connection(conn_id)
    if connection is None or _means_connect(connection.conn_type, connection.host or ""):
        return False
    return bool(connection.extra_dejson.get("deploy-mode") == "cluster")


@contextlib.contextmanager
def submit_environment(conn_id: str, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Process environment in which `spark-submit` is found and a missing connection means a local master.

    Without this the provider silently turns a missing connection into `--master yarn` (its `SparkSubmitHook`), and a
    worker started by its full path does not find the `spark-submit` of its own Python. An address in `SPARK_REMOTE` is
    removed, since Spark and the job would prefer it to the connection.

    Args:
        conn_id: the Airflow connection.
        more: variables for the child that must not become settings of Spark, as the operator's `env_vars` do on YARN
            and Kubernetes.
    """
    changes: dict[str, str | None] = {REMOTE_VARIABLE: None}
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
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables; None removes one."""
    before = {key: os.environ.get(key) for key in changes}
    _change(changes)
    try:
        yield
    finally:
        _change(before)


def _change(changes: Mapping[str, str | None]) -> None:
    for key, value in changes.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
