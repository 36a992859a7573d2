"""Tasks whose functions are imported when they run, not while DAGs are parsed."""

import inspect
from pathlib import Path

import pytest

from mirror_lib.airflow.dags import mirror_dags
from mirror_lib.airflow.python_task import PythonTask
from tests.support.flow_files import write_flow
from tests.support.fresh_imports import loaded_after

#: They take a second or more to import, and DAGs are parsed every few seconds.
HEAVY = ("confluent_kafka", "aiokafka", "pyarrow", "pyspark", "alembic")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    lines = ("A->B.mirror.failback = false", "B->A.enabled = true", "B->A.mirror.failback = true")
    return write_flow(tmp_path, *lines, "mirror.audit.schedule = 1h")


def test_every_task_of_every_dag_has_a_function_that_takes_its_arguments(config: Path) -> None:
    dags = mirror_dags(config)
    tasks = [task for dag in dags.values() for task in dag.tasks if isinstance(task, PythonTask)]

    assert {task.dag.dag_id.split("__")[0] for task in tasks} == {
        "mirror",
        "mirror_audit",
        "mirror_backfill",
        "mirror_cutover",
        "mirror_heartbeats",
        "mirror_after_disaster",
    }
    for task in tasks:
        function = task.python_callable.load()
        # Airflow gives the rest by the names of the context.
        inspect.signature(function).bind_partial(**task.op_kwargs)
        assert task.doc_md, task.task_id
        assert inspect.signature(task.python_callable) == inspect.signature(function)


def test_parsing_the_dags_imports_neither_kafka_nor_spark(config: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mirror_lib.airflow.dags import mirror_dags; "
        "mirror_dags(Path(sys.argv[1]))"
    )

    assert loaded_after(program, HEAVY, config) == []
