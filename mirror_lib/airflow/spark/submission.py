"""A connection that submits jobs: its master, and what `spark-submit` or the provider would reject. Without Airflow."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

from mirror_lib.errors import ConfigurationError
from mirror_lib.masked_urls import masked_urls

#: Values of the provider's `ALLOWED_SPARK_BINARIES`.
_PROGRAMS: Final = ("spark-submit", "spark2-submit", "spark3-submit")
#: Beginnings of the masters that `SparkSubmit.prepareSubmitEnvironment` accepts.
_MASTERS: Final = ("spark://", "k8s://", "local")
_DEPLOY_MODES: Final = ("client", "cluster")
_DEPLOY_MODE: Final = "spark.submit.deployMode"


def master_url(connection: Any) -> str:
    """Return the master URL of an Airflow connection, by the rules of the provider's `_resolve_connection`.

    The host is the whole URL, or the connection was given as a URI such as `spark://host:7077`: then its type is the
    scheme.
    """
    host = connection.host or ""
    if not (connection.conn_type == "spark" and host and ("://" in host or not connection.port)):
        host = f"{connection.conn_type}://{host}"
    return f"{host}:{connection.port}" if connection.port else host


def shown_master(master: str) -> str:
    """Return a master URL for messages. A file may name any connection: only the scheme is shown of an address that is
    none of Spark's, which may be that of a webhook.
    """
    scheme, separator, _ = master.partition("://")
    return masked_urls(master) if _is_master(master) or not separator else f"{scheme}://..."


def _is_master(master: str) -> bool:
    return master == "yarn" or master.startswith(_MASTERS)


def check_submission(conn_id: str, connection: Any, defaults: Mapping[str, str], *, by_provider: bool) -> str | None:
    """Check what `spark-submit` or Airflow's Spark provider would reject, with an exit code that says nothing.

    Args:
        conn_id: the connection's name, for messages.
        defaults: settings of `spark-defaults.conf`.
        by_provider: whether the provider submits the job.

    Returns:
        a warning, None if there is none.

    Raises:
        ConfigurationError: no job can be submitted.
    """
    _check_master(conn_id, connection)
    if by_provider:
        _check_provider(conn_id, connection)
    return _check_deploy_mode(conn_id, connection, defaults)


def _check_master(conn_id: str, connection: Any) -> None:
    master = master_url(connection)
    if not connection.host:
        what = f"the Airflow connection {conn_id} has no host, so Spark has no master"
    elif _is_master(master):
        return
    else:
        what = (
            f"the Airflow connection {conn_id} names the master {shown_master(master)}, and Spark has no such masters"
        )
    raise ConfigurationError(
        f"{what}.",
        action="Set the connection's type to spark and its host to spark://<host>:<port>, k8s://https://<host>:<port>, "
        "yarn or local[*].",
    )


def _check_provider(conn_id: str, connection: Any) -> None:
    extra, master = connection.extra_dejson, master_url(connection)
    program = extra.get("spark-binary", _PROGRAMS[0])
    if program not in _PROGRAMS:
        raise ConfigurationError(
            f"the Airflow connection {conn_id} has spark-binary {program!r}, which Airflow's Spark provider rejects.",
            action=f"Set it to one of {', '.join(_PROGRAMS)}, and add the program's folder to PATH of Airflow's "
            "workers.",
        )
    if extra.get("spark-home"):
        raise ConfigurationError(
            f"the Airflow connection {conn_id} has spark-home, which Airflow's Spark provider rejects.",
            action="Remove it, and set SPARK_HOME in the environment of Airflow's workers.",
        )
    # As the provider: it also takes a host for one that only has these letters in its name.
    if "k8s" in master and not _has_kubernetes_provider():
        raise ConfigurationError(
            f"the Airflow connection {conn_id} names the master {shown_master(master)}, for which Airflow's Spark "
            "provider needs the package apache-airflow-providers-cncf-kubernetes.",
            action="Install it in Airflow's environment.",
        )


def _check_deploy_mode(conn_id: str, connection: Any, defaults: Mapping[str, str]) -> str | None:
    chosen, master = connection.extra_dejson.get("deploy-mode"), master_url(connection)
    mode = chosen or defaults.get(_DEPLOY_MODE) or _DEPLOY_MODES[0]
    where = f"the Airflow connection {conn_id} has deploy-mode" if chosen else f"spark-defaults.conf has {_DEPLOY_MODE}"
    if mode not in _DEPLOY_MODES:
        raise ConfigurationError(f"{where} {mode}, which Spark does not know.", action="Set it to client.")
    if mode != "cluster":
        return None
    if master.startswith(("spark://", "local")):
        raise ConfigurationError(
            f"{where} cluster, but on {shown_master(master)} Spark runs Python jobs in client mode only.",
            action="Set it to client.",
        )
    return (
        f"{where} cluster: the driver runs in the cluster, so its report does not reach this worker. Airflow shows no "
        "numbers, and retries errors that no retry can fix. Set it to client."
    )


def _has_kubernetes_provider() -> bool:
    try:
        return find_spec("airflow.providers.cncf.kubernetes") is not None
    except ModuleNotFoundError:
        return False
