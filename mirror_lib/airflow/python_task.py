"""A Python task of this project. Its function is imported when the task runs, not while DAGs are parsed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

from mirror_lib.airflow.compatibility import Context, PythonOperator
from mirror_lib.airflow.forms.conf import CheckedConf
from mirror_lib.airflow.retries import failing_at_once
from mirror_lib.airflow.secret_masking import task_secrets
from mirror_lib.airflow.templates import Template, untemplated


@dataclass(frozen=True, slots=True)
class LateFunction:
    """A function that is imported when it is called: Kafka and SQL take a second, and DAGs are parsed all the time."""

    #: As in entry points: `package.module:function`.
    place: str

    @property
    def __name__(self) -> str:
        """The function's own name."""
        return self.place.partition(":")[2]

    @property
    def __signature__(self) -> inspect.Signature:
        """By it Airflow chooses which parts of a run's context the function gets."""
        return inspect.signature(self.load())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Import and call it."""
        return self.load()(*args, **kwargs)

    def load(self) -> Any:
        """Import it."""
        return getattr(import_module(self.place.partition(":")[0]), self.__name__)


class PythonTask(CheckedConf, PythonOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Calls its function, which may read a configuration with secrets from Airflow."""

    @classmethod
    def of(
        cls, place: str, documentation: str, given: Mapping[str, Any], *, task_id: str | None = None, **more: Any
    ) -> Self:
        """Return the task of a function, with its name unless `task_id` is set.

        Args:
            place: `package.module:function`.
            documentation: shown by Airflow.
            given: keyword arguments of the function; a text is rendered only if it is a `Template`.
        """
        fixed = {
            # Airflow serializes plain texts only.
            name: value.text if isinstance(value, Template) else untemplated(value) if isinstance(value, str) else value
            for name, value in given.items()
        }
        function = LateFunction(place)
        return cls(
            task_id=task_id or function.__name__,
            python_callable=function,
            op_kwargs=fixed,
            doc_md=documentation,
            **more,
        )

    def execute(self, context: Context) -> Any:
        """Call the function."""
        with failing_at_once(), task_secrets():
            return super().execute(context)
