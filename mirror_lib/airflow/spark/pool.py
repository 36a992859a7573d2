"""The Airflow pool that tasks take a slot of when they load brokers: those that submit a Spark job."""

from __future__ import annotations

from mirror_lib.config import FlowConfig

_DEFAULT_POOL = "default_pool"


def pool_of(flow: FlowConfig) -> str:
    """`mirror.airflow.pool`. It must exist: until it does, Airflow queues no task for it and warns at the DAG."""
    return flow.airflow_pool or _DEFAULT_POOL
