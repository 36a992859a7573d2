"""The DAGs that compare each flow's target with its source; the flows' own DAGs do not depend on them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from mirror_lib.airflow import DAG, RUN_TYPES, airflow_schedule, new_dag, retry_policy
from mirror_lib.airflow.files import dags_of_flows
from mirror_lib.airflow.forms.fields import put_form
from mirror_lib.airflow.spark.pool import pool_of
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.verify.airflow.form import verify_form
from mirror_lib.features.verify.airflow.operator import VerifyOperator
from mirror_lib.past_runs.airflow_runs import verify_dag_id_of
from mirror_lib.topology.names import FlowId

#: A full comparison of large logs takes long; one that needs a week is stuck.
_RUN_TIMEOUT = timedelta(days=7)
_DOCUMENTATION = """\
Compares the target with the source, record by record and in order. Changes nothing on either cluster. Runs by
`mirror.verify.schedule`, or when triggered manually.

The task fails without retries if both clusters differ: its log, its XCom `verification` and the ledger contain the
differences. Transient errors, such as a broker that restarts, are retried. Contents of records are never shown.
docs/verification.md describes what is compared, and the results.
"""


def build_verify_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the verification DAGs, as `flow_dags.dags_of_flows` makes them."""
    return dags_of_flows(paths, only, dag_id=lambda flow: verify_dag_id(flow.flow), build=build_verify_dag)


def build_verify_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """Return the DAG of one flow's verification: a single task. It holds the file's path and the flow's name, no
    secrets.
    """
    source, target = flow.flow.source, flow.flow.target
    with new_dag(
        verify_dag_id(flow.flow),
        f"Verify {source} → {target}",
        f"Compares the copied topics on cluster {target} with cluster {source}",
        _DOCUMENTATION,
        schedule=airflow_schedule(flow.verify_schedule),
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        dagrun_timeout=_RUN_TIMEOUT,
        tags={"verification", source, target},
    ) as dag:
        VerifyOperator(
            task_id="verify",
            flow=str(flow.flow),
            config_path=str(config_path),
            conn_id=flow.spark_connection,
            pool=pool_of(flow),
            doc_md="The Spark job: plans, compares, stores the result in the ledger.",
            retries=3,
            **retry_policy(),
            retry_delay=timedelta(minutes=1),
            retry_exponential_backoff=2,
            max_retry_delay=timedelta(minutes=10),
        )
    put_form(dag, verify_form(flow))
    return dag


def verify_dag_id(flow: FlowId) -> str:
    """Return `mirror_verify__<source>__<target>`: stable, so that history and API clients survive upgrades."""
    return verify_dag_id_of(flow)
