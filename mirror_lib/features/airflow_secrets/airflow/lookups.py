"""Lookups of a task of Airflow, by Airflow's own calls, so that all its secrets backends work.

Nothing is cached between tasks: a change takes effect with the next task.
"""

from __future__ import annotations

from mirror_lib.airflow import (
    AirflowException,
    AirflowNotFoundException,
    AirflowRuntimeError,
    BaseHook,
    ErrorType,
    Variable,
)
from mirror_lib.config.secrets.lookup_context import TaskValues
from mirror_lib.config.secrets.providers import ProviderError
from mirror_lib.errors import TransientError
from mirror_lib.features.airflow_secrets.values import ConnectionValues, Reference

#: Errors that a retry cannot fix.
_REFUSALS = frozenset({ErrorType.CONNECTION_NOT_FOUND, ErrorType.VARIABLE_NOT_FOUND, ErrorType.PERMISSION_DENIED})


def task_value(reference: Reference, task: TaskValues) -> str:
    """Return a value of Airflow; connections and variables are read once per task.

    Raises:
        ProviderError: Airflow has no such value, or denies it to the task.
        TransientError: Airflow does not respond, which is not an error of the file.
    """
    name = str(reference)
    if name not in task.found:
        task.found[name] = _variable(reference.name) if reference.field is None else _field(reference, task)
    return task.found[name]


def _field(reference: Reference, task: TaskValues) -> str:
    if reference.name not in task.connections:
        task.connections[reference.name] = _connection(reference.name)
    values: ConnectionValues = task.connections[reference.name]
    return values.value(reference)


def _connection(name: str) -> ConnectionValues:
    try:
        found = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise ProviderError(f"Airflow has no connection {name}, or the task has no permission to read it") from None
    except (AirflowRuntimeError, AirflowException, PermissionError) as error:
        # The text comes from a secrets backend and may contain the secret.
        raise _not_given(f"the connection {name}", error) from None
    return ConnectionValues(
        login=found.login,
        password=found.password,
        host=found.host,
        port=found.port,
        schema=found.schema,
        extra=found.extra_dejson,
    )


def _variable(name: str) -> str:
    try:
        return str(Variable.get(name))
    except (KeyError, AirflowRuntimeError, AirflowException, PermissionError) as error:
        raise _not_given(f"the variable {name}", error) from None


def _not_given(what: str, error: Exception) -> ProviderError | TransientError:
    """Return an error of the file if Airflow does not have the value or denies it to the task."""
    if isinstance(error, AirflowRuntimeError) and error.error.error not in _REFUSALS:
        return TransientError(
            f"Airflow did not return {what} ({error.error.error.value}).",
            action="Usually transient. If it persists, check Airflow's API server and its secrets backend.",
        )
    return ProviderError(f"Airflow did not return {what} ({type(error).__name__})")
