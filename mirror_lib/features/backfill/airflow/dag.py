"""One DAG per flow for backfills, triggered manually: each run defines a backfill, or continues one, and copies."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from mirror_lib.airflow import DAG, PythonTask, new_dag, retry_policy
from mirror_lib.airflow.files import dags_of_flows
from mirror_lib.airflow.forms.fields import put_form
from mirror_lib.airflow.spark.pool import pool_of
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.backfill.airflow.form import backfill_form
from mirror_lib.features.backfill.airflow.operator import BackfillOperator
from mirror_lib.past_runs.airflow_runs import dag_id_of

_DEFINE_TIMEOUT = timedelta(minutes=30)


def build_backfill_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the backfill DAGs, as `flow_dags.dags_of_flows` makes them."""
    return dags_of_flows(paths, only, dag_id=backfill_dag_id, build=build_backfill_dag)


def build_backfill_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """Return the DAG of one flow: define, copy. A retry continues where the copy stopped."""
    source, target = flow.flow.source, flow.flow.target
    name, path = str(flow.flow), str(config_path)
    with new_dag(
        backfill_dag_id(flow),
        f"Backfill {source} → {target}",
        f"Copies ranges of topics of cluster {source} to cluster {target}, next to the flow",
        __doc__,
        tags={"backfill", source, target},
        task_settings={**retry_policy(), "retries": 3, "retry_delay": timedelta(minutes=1)},
    ) as dag:
        defined = PythonTask.of(
            "mirror_lib.features.backfill.airflow.tasks:define",
            "Resolves topics, times and offsets, once for all runs; logs the estimate and creates the target topics.",
            {"flow": name, "config_path": path},
            execution_timeout=_DEFINE_TIMEOUT,
        )
        copy = BackfillOperator(
            task_id="copy",
            defined_by=defined.task_id,
            flow=name,
            config_path=path,
            conn_id=flow.spark_connection,
            pool=pool_of(flow),
            doc_md="The Spark job: copies the rest of the backfill, within the budget. A retry continues it.",
        )
        defined >> copy
    put_form(dag, backfill_form(flow))
    return dag


def backfill_dag_id(flow: FlowConfig) -> str:
    """Return `mirror_backfill__<source>__<target>`."""
    return dag_id_of(flow.flow).replace("mirror", "mirror_backfill", 1)
