"""The Airflow pool of tasks that put load on brokers: those that submit a Spark job."""

from __future__ import annotations

from mirror_lib.config.model import FlowConfig

_DEFAULT_POOL = "default_pool"


def pool_of(flow: FlowConfig) -> str:
    """Return `mirror.airflow.pool`. It must exist: until then, Airflow queues no task for it and warns at the DAG."""
    return flow.airflow_pool or _DEFAULT_POOL
