"""A Python task of this project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from mirror_lib.airflow.compatibility import Context, PythonOperator
from mirror_lib.airflow.forms import CheckedConf
from mirror_lib.airflow.retries import failing_at_once
from mirror_lib.airflow.secret_provider import task_secrets
from mirror_lib.airflow.templates import Template, untemplated


class PythonTask(CheckedConf, PythonOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Calls its function, which may read a configuration with secrets from Airflow."""

    @classmethod
    def of(
        cls, function: Callable[..., Any], given: Mapping[str, Any], *, task_id: str | None = None, **more: Any
    ) -> Self:
        """Return the task of a function, with its name, unless `task_id` is set, and its docstring as documentation.

        Args:
            given: keyword arguments of the function; a text is rendered only if it is a `Template`.
        """
        fixed = {
            # Airflow serializes plain texts only.
            name: value.text if isinstance(value, Template) else untemplated(value) if isinstance(value, str) else value
            for name, value in given.items()
        }
        return cls(
            task_id=task_id or function.__name__,
            python_callable=function,
            op_kwargs=fixed,
            doc_md=function.__doc__,
            **more,
        )

    def execute(self, context: Context) -> Any:
        """Call the function."""
        with failing_at_once(), task_secrets():
            return super().execute(context)
