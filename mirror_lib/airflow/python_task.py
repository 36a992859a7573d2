"""A Python task of this project."""

from __future__ import annotations

from typing import Any

from mirror_lib.airflow.compatibility import Context, PythonOperator
from mirror_lib.airflow.secret_provider import task_secrets


class PythonTask(PythonOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Calls its function, which may read a configuration with secrets that Airflow keeps."""

    def execute(self, context: Context) -> Any:
        """Call it."""
        with task_secrets():
            return super().execute(context)
