"""What all DAGs of this project have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from mirror_lib.airflow.compatibility import DAG

#: Any day in the past will do: with `catchup` off, runs begin when the DAG is unpaused.
_START: Final = datetime(2024, 1, 1, tzinfo=UTC)


def new_dag(
    dag_id: str,
    title: str,
    description: str,
    documentation: str | None,
    *,
    tags: Iterable[str],
    task_settings: Mapping[str, Any] | None = None,
    **settings: Any,
) -> DAG:
    """Return a DAG without tasks; without a schedule, unless the settings have one.

    Args:
        title: the name that Airflow's page shows.
        documentation: Markdown.
        tags: besides `mirror`.
        task_settings: defaults of its tasks.
        settings: further arguments of Airflow's `DAG`.
    """
    return DAG(
        dag_id=dag_id,
        dag_display_name=title,
        description=description,
        doc_md=documentation,
        start_date=_START,
        catchup=False,
        tags=sorted({"mirror", *tags}),
        default_args={"owner": "mirror", **(task_settings or {})},
        **{"schedule": None, **settings},
    )
