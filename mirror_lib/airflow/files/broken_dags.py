"""DAGs with a broken file: marked, or with a single task that fails with the reason."""

from __future__ import annotations

from typing import Final

from mirror_lib.airflow.compatibility import DAG
from mirror_lib.airflow.dag_defaults import new_dag
from mirror_lib.airflow.python_task import PythonTask
from mirror_lib.errors import ConfigurationError, MirrorError

#: Tag of such DAGs, for Airflow's filter.
BROKEN_TAG: Final = "broken file"


def mark(dag: DAG, error: MirrorError) -> None:
    """Show on a DAG's page that its file is broken. Its runs fail: each task reads the file, and rejects it."""
    dag.tags.add(BROKEN_TAG)
    # Otherwise Airflow would pause the DAG, and it would stay paused after the file is fixed.
    dag.max_consecutive_failed_dag_runs = 0
    dag.description = (
        f"The configuration file is broken, and runs fail: see the DAG documentation. {dag.description or ''}".rstrip()
    )
    title = "The configuration file of this flow is broken. Every run fails until it is fixed."
    dag.doc_md = f"{_markdown_block(title, str(error))}\n{dag.doc_md}"


def failing_dag(dag_id: str, title: str, text: str) -> DAG:
    """Return a DAG that only fails with a text.

    Args:
        title: shown as its name, and above the text in its documentation.
    """
    with new_dag(
        dag_id,
        title,
        f"{title}: see the DAG documentation",
        _markdown_block(title, text),
        tags={BROKEN_TAG},
        task_settings={"retries": 0},
    ) as dag:
        PythonTask.of(
            f"{__name__}:refuse", "Fails with the problems of the file.", {"text": text}, task_id="what_is_wrong"
        )
    return dag


def refuse(text: str) -> None:
    """Fails with the problems of the file."""
    raise ConfigurationError(text)


def _markdown_block(title: str, text: str) -> str:
    return "\n".join([f"**{title}**", "", *(f"    {line}" for line in text.splitlines()), ""])
