"""The DAGs that audit the copies of flows with `mirror.audit.schedule`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from mirror_lib.airflow import DAG, RUN_TYPES, PythonTask, airflow_schedule, new_dag, retry_policy
from mirror_lib.airflow.files import dags_of_flows
from mirror_lib.airflow.forms.fields import put_form
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.audit.airflow.form import audit_form
from mirror_lib.features.audit.manifest import SCHEDULE
from mirror_lib.past_runs.airflow_runs import dag_id_of

#: The next audit waits for its end.
_RUN_TIMEOUT = timedelta(days=1)
_DOCUMENTATION = """\
Compares the copies of the flow's topics with their source, record by record, whichever program copies them
(`mirror audit`). Only reads, without Spark and without the ledger.

The task fails without retries if a copy is wrong: its log has the report, its XCom `audit` the numbers. Records that
cannot be verified are warnings. Contents of records are never shown. docs/audit.md describes what is compared.
"""


def build_audit_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the DAGs of flows with a schedule for audits, as `flow_dags.dags_of_flows` makes them."""
    return dags_of_flows(
        paths, only, dag_id=audit_dag_id, build=build_audit_dag, takes=lambda _, flow: bool(SCHEDULE.of(flow).strip())
    )


def build_audit_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """Return the DAG of one flow: a single task, in one process."""
    source, target = flow.flow.source, flow.flow.target
    with new_dag(
        audit_dag_id(flow),
        f"Audit {source} → {target}",
        f"Compares the copies on cluster {target} with cluster {source}, whichever program makes them",
        _DOCUMENTATION,
        schedule=airflow_schedule(SCHEDULE.of(flow).strip()),
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        dagrun_timeout=_RUN_TIMEOUT,
        tags={"audit", source, target},
    ) as dag:
        PythonTask.of(
            "mirror_lib.features.audit.airflow.tasks:audit_flow",
            "Reads both sides, compares them, writes the metrics (`mirror.audit.metrics`).",
            {"flow": str(flow.flow), "config_path": str(config_path)},
            task_id="audit",
            retries=2,
            **retry_policy(),
            retry_delay=timedelta(minutes=1),
        )
    put_form(dag, audit_form(flow))
    return dag


def audit_dag_id(flow: FlowConfig) -> str:
    """Return `mirror_audit__<source>__<target>`."""
    return dag_id_of(flow.flow).replace("mirror", "mirror_audit", 1)
