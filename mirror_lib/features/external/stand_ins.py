"""What this package uses of Airflow, for a process without Airflow.

DAGs and operators only hold what they were given, for `describe`. What a task asks of Airflow goes through the channel
to the Airflow task that started this process.
"""

from __future__ import annotations

import enum
import inspect
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Self

from mirror_lib.airflow import RetryDecision as RetryDecision
from mirror_lib.airflow import RetryPolicy as RetryPolicy
from mirror_lib.features.external.channel import RefusedByAirflowError, channel
from mirror_lib.features.external.spark_submit import SparkChild, submit_line

Context = Mapping[str, Any]


# ------------------------------------------------------------ exceptions


class AirflowException(Exception):
    """The task failed, and may be retried."""


class AirflowFailException(AirflowException):
    """The task failed, and is not retried."""


class AirflowSkipException(AirflowException):
    """The task is skipped."""


class AirflowNotFoundException(AirflowException):
    """Airflow has no such connection."""


class DownstreamTasksSkipped(AirflowException):
    """The task succeeded, and Airflow is to skip others."""

    def __init__(self, *, tasks: Sequence[str]) -> None:
        super().__init__()
        self.tasks = list(tasks)


class ErrorType(enum.Enum):
    """Kinds of failed requests to Airflow."""

    CONNECTION_NOT_FOUND = "CONNECTION_NOT_FOUND"
    VARIABLE_NOT_FOUND = "VARIABLE_NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    GENERIC_ERROR = "GENERIC_ERROR"


class AirflowRuntimeError(Exception):
    """Airflow did not answer a request."""

    def __init__(self, error: ErrorType) -> None:
        super().__init__(error.value)
        self.error = SimpleNamespace(error=error)


# ------------------------------------------------------------ forms


class Param:
    """A field of a form."""

    def __init__(self, default: Any = None, description: str | None = None, **schema: Any) -> None:
        self.value = default
        self.description = description
        self.schema = schema


class ParamsDict(dict[str, Any]):
    """The fields of a form, by name."""

    def get_param(self, name: str) -> Any:
        """Return a field."""
        return self[name]


# ------------------------------------------------------------ DAGs and operators


class TriggerRule(enum.StrEnum):
    """When a task runs."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    NONE_FAILED = "none_failed"


#: The DAG file gives none to its DAGs, since Airflow 2 has none: `task.run_task` refuses backfills.
KNOWN_RUN_TYPES: Final = frozenset[str]()


class Asset:
    """An asset's address."""

    def __init__(self, uri: str, **_: Any) -> None:
        self.uri = uri


class AssetAlias:
    """A name under which a task announces assets."""

    def __init__(self, name: str) -> None:
        self.name = name


class DAG:
    """The arguments of a DAG, and its tasks."""

    _open: ClassVar[list[DAG]] = []

    def __init__(self, dag_id: str, *, default_args: Mapping[str, Any] | None = None, **arguments: Any) -> None:
        self.dag_id = dag_id
        self.default_args = dict(default_args or {})
        self.arguments = arguments
        self.tags = set(arguments.pop("tags", ()))
        self.description: str | None = arguments.pop("description", None)
        self.doc_md: str | None = arguments.pop("doc_md", None)
        self.max_consecutive_failed_dag_runs: int = arguments.pop("max_consecutive_failed_dag_runs", 0)
        self.params = ParamsDict()
        self.tasks: dict[str, BaseOperator] = {}

    def __enter__(self) -> Self:
        self._open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.pop()

    @classmethod
    def current(cls) -> DAG | None:
        """Return the DAG whose `with` block is open."""
        return cls._open[-1] if cls._open else None


class BaseOperator:
    """A task: its arguments, and what comes before it."""

    template_fields: Sequence[str] = ()

    def __init__(self, *, task_id: str, doc_md: str | None = None, **arguments: Any) -> None:
        self.task_id = task_id
        self.doc_md = doc_md
        self.upstream: set[str] = set()
        self.dag = DAG.current()
        defaults = self.dag.default_args if self.dag is not None else {}
        #: Arguments of every operator, as far as they were given.
        self.arguments = {**defaults, **arguments}
        self.log = logging.getLogger(type(self).__module__)
        if self.dag is not None:
            self.dag.tasks[task_id] = self

    def __rshift__(self, other: Any) -> Any:
        for each in other if isinstance(other, list | tuple) else [other]:
            each.upstream.add(self.task_id)
        return other

    def __rrshift__(self, other: Iterable[BaseOperator]) -> Self:
        for each in other:
            self.upstream.add(each.task_id)
        return self

    def pre_execute(self, context: Context) -> None:
        """Nothing."""

    def execute(self, context: Context) -> Any:
        """Do the work."""
        raise NotImplementedError

    def on_kill(self) -> None:
        """Nothing: an exception ends the work."""


class PythonOperator(BaseOperator):
    """Calls a function with its arguments and those of the context that it names."""

    def __init__(
        self, *, python_callable: Callable[..., Any], op_kwargs: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        super().__init__(**more)
        self.python_callable = python_callable
        self.op_kwargs = dict(op_kwargs or {})

    def execute(self, context: Context) -> Any:
        """Call the function."""
        taken = inspect.signature(self.python_callable).parameters
        takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values())
        given = {name: value for name, value in context.items() if takes_all or name in taken}
        return self.python_callable(**{**given, **self.op_kwargs})


class SparkSubmitOperator(BaseOperator):
    """Runs `spark-submit` of this environment on the master of Airflow's connection."""

    def __init__(self, *, application: str, conn_id: str, conf: Mapping[str, Any], name: str = "", **more: Any) -> None:
        super().__init__(**more)
        self.application = application
        self.conf = dict(conf)
        self.application_args: list[str] = []
        self.env_vars: dict[str, str] = {}
        self._conn_id, self._name = conn_id, name
        self._child: SparkChild | None = None

    def execute(self, context: Context) -> None:
        """Submit the job, and log its output.

        Raises:
            AirflowException: its exit code is not 0, with the message of the provider's `SparkSubmitHook.submit`.
            ConfigurationError: the connection has something that is not carried over.
        """
        del context
        line = submit_line(
            BaseHook.get_connection(self._conn_id),
            conf=self.conf,
            name=self._name,
            variables=self.env_vars,
            application=[self.application, *self.application_args],
        )
        self._child = SparkChild(line, {**os.environ, **self.env_vars})
        code = self._child.run(self.log)
        if code:
            raise AirflowException(f"Cannot execute: {line[0]}. Error code is: {code}.")

    def on_kill(self) -> None:
        """End the job and its processes."""
        if self._child is not None:
            self._child.end()


# ------------------------------------------------------------ retries


#: `task.run_task` asks the policy's rule itself.
HAS_RETRY_POLICIES = True


# ------------------------------------------------------------ deadlines: described as what is not carried over


class DeadlineReference:
    """What a deadline counts from."""

    DAGRUN_QUEUED_AT: Final = "queued"


class AsyncCallback:
    """A function for the triggerer."""

    def __init__(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
        self.function, self.kwargs = function, kwargs


class DeadlineAlert:
    """A deadline of a DAG."""


def make_deadline(**arguments: Any) -> DeadlineAlert:
    """Return a deadline without effect: `describe.notes` says so."""
    del arguments
    return DeadlineAlert()


# ------------------------------------------------------------ what Airflow knows


class BaseHook:
    """Airflow's connections."""

    @classmethod
    def get_connection(cls, name: str) -> Any:
        """Return a connection.

        Raises:
            AirflowNotFoundException: there is none.
            AirflowRuntimeError: Airflow did not answer.
        """
        local = os.environ.get(f"AIRFLOW_CONN_{name.upper()}")
        if local is not None:
            return _connection(json.loads(local))
        asked = channel()
        if asked is None:
            raise AirflowNotFoundException(f"connection {name}: no Airflow task started this process")
        try:
            return _connection(asked.ask("connection", name=name))
        except RefusedByAirflowError as error:
            if error.kind == "not-found":
                raise AirflowNotFoundException(f"Airflow has no connection {name}") from None
            raise AirflowRuntimeError(_error_type(error)) from None


class Variable:
    """Airflow's variables."""

    @classmethod
    def get(cls, name: str) -> str:
        """Return a variable's text.

        Raises:
            KeyError: there is none.
            AirflowRuntimeError: Airflow did not answer.
        """
        asked = channel()
        if asked is None:
            raise KeyError(name)
        try:
            return str(asked.ask("variable", name=name))
        except RefusedByAirflowError as error:
            if error.kind == "not-found":
                raise KeyError(name) from None
            raise AirflowRuntimeError(_error_type(error)) from None


def mask_secret(text: str) -> None:
    """Hide a text in the task's log from now on."""
    asked = channel()
    if asked is not None:
        asked.ask("mask", text=text)


#: Its `dag_id` is the DAG of the task that this process runs; None in a process that describes all.
parsing = SimpleNamespace(dag_id=None, task_id=None)


def get_parsing_context() -> Any:
    """Return `parsing`."""
    return parsing


def _connection(given: Mapping[str, Any]) -> Any:
    extra = given.get("extra") or {}
    if isinstance(extra, str):
        extra = json.loads(extra)
    names = ("conn_type", "host", "login", "password", "schema")
    fields = {name: given.get(name) for name in names}
    port = given.get("port")
    return SimpleNamespace(
        **fields, port=None if port is None else int(port), extra=json.dumps(extra), extra_dejson=extra
    )


def _error_type(error: RefusedByAirflowError) -> ErrorType:
    return ErrorType.PERMISSION_DENIED if error.kind == "denied" else ErrorType.GENERIC_ERROR
