"""One task of a DAG, in a process that an Airflow task of another environment has started."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Self

from mirror_lib.airflow import is_hopeless
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.external.channel import PROTOCOL, Channel, LostAirflowError
from mirror_lib.features.external.describe import external_dags
from mirror_lib.features.external.stand_ins import (
    DAG,
    AirflowFailException,
    AirflowSkipException,
    AssetAlias,
    BaseOperator,
    DownstreamTasksSkipped,
    parsing,
)
from mirror_lib.printable import LINES, indented, printable
from mirror_lib.printable_logs import PrintableFormatter

_log = logging.getLogger(__name__)


class Terminated(BaseException):
    """Airflow ends the task."""


def run_task(paths: Sequence[Path], dag_id: str, task_id: str, channel: Channel) -> int:
    """Run a task, and report its result to the Airflow task; return the exit code of the process."""
    with _log_to(channel), _terminating() as is_ended:
        try:
            return _run(paths, dag_id, task_id, channel, is_ended)
        except (Terminated, LostAirflowError):
            return 128 + signal.SIGTERM


def _run(paths: Sequence[Path], dag_id: str, task_id: str, channel: Channel, is_ended: Callable[[], bool]) -> int:
    try:
        task = _task(paths, dag_id, task_id, channel.first)
        context = _context(task, channel)
        task.pre_execute(context)
        value = task.execute(context)
    except AirflowSkipException as skip:
        channel.end(outcome="skip", message=printable(str(skip)))
    except DownstreamTasksSkipped as skip:
        channel.end(outcome="skip-others", tasks=skip.tasks)
    except LostAirflowError:
        raise
    except Exception as error:
        if is_ended():
            # Extensions in C replace `Terminated` by an error of their own.
            raise Terminated from error
        hopeless = isinstance(error, AirflowFailException) or is_hopeless(error)
        if not isinstance(error, MirrorError | AirflowFailException):
            _log.exception("The task %s failed", task_id)
        message = indented(printable(str(error), LINES)) or type(error).__name__
        channel.end(outcome="fail" if hopeless else "retry", message=message)
        return error.exit_code if isinstance(error, MirrorError) else 1
    else:
        channel.end(outcome="success", value=value)
    return 0


def _task(paths: Sequence[Path], dag_id: str, task_id: str, run: Mapping[str, Any]) -> BaseOperator:
    if run.get("protocol") != PROTOCOL:
        raise ConfigurationError(
            "the DAG file is of another version of this program.",
            action="Write it again with `mirror airflow dag-file`.",
        )
    if str(run["run_type"]).startswith("backfill"):
        raise ConfigurationError(
            f"this run of {dag_id} is one of Airflow's backfills. A run copies what is new and has no data interval.",
            action="Nothing was done. To copy records again, trigger the DAG mirror_backfill of the flow.",
        )
    parsing.dag_id = dag_id
    dag = external_dags(paths).get(dag_id)
    if dag is None or task_id not in dag.tasks:
        raise ConfigurationError(
            f"{', '.join(map(str, paths))}: there is no DAG {dag_id} with a task {task_id} any more.",
            action="Check the flow and mirror.airflow.execution in the configuration file.",
        )
    found: BaseOperator = dag.tasks[task_id]
    return found


def _context(task: BaseOperator, channel: Channel) -> dict[str, Any]:
    run = channel.first
    dag = task.dag
    assert isinstance(dag, DAG)
    instance = TaskInstance(task.task_id, int(run["try_number"]), channel)
    return {
        "dag": dag,
        "dag_run": DagRun.sent(run),
        "run_id": run["run_id"],
        "params": run["params"],
        "ti": instance,
        "task_instance": instance,
        "outlet_events": _OutletEvents(channel),
    }


@dataclass(frozen=True, slots=True)
class DagRun:
    """What a task asks of its DAG run."""

    dag_id: str
    run_id: str
    run_type: str
    conf: Mapping[str, Any]
    #: None: this Airflow does not have it, or the DAG file was written by an older version.
    run_after: datetime | None
    start_date: datetime | None

    @classmethod
    def sent(cls, first: Mapping[str, Any]) -> Self:
        """Make it from the first message of the DAG file (`_about`)."""
        after, started = first.get("triggered"), first.get("started")
        return cls(
            dag_id=first["dag_id"],
            run_id=first["run_id"],
            run_type=first["run_type"],
            conf=first["conf"],
            run_after=datetime.fromisoformat(after) if after else None,
            start_date=datetime.fromisoformat(started) if started else None,
        )


class TaskInstance:
    """What a task asks of its own instance in Airflow."""

    def __init__(self, task_id: str, try_number: int, channel: Channel) -> None:
        self.task_id, self.try_number = task_id, try_number
        self._channel = channel

    def xcom_pull(self, *, task_ids: str, key: str = "return_value") -> Any:
        """Return a value of another task of the run; None if there is none."""
        return self._channel.ask("xcom_pull", task=task_ids, key=key)

    def xcom_push(self, *, key: str, value: Any) -> None:
        """Store a value."""
        self._channel.ask("xcom_push", key=key, value=value)

    def get_task_states(self, *, dag_id: str, task_ids: Sequence[str], run_ids: Sequence[str]) -> dict[str, Any]:
        """Return the states of tasks of this run, by run and task."""
        del dag_id
        states = {task: self._channel.ask("task_state", task=task) for task in task_ids}
        return {run: {task: state for task, state in states.items() if state is not None} for run in run_ids}


class _OutletEvents:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __getitem__(self, alias: AssetAlias) -> _AliasEvents:
        return _AliasEvents(alias.name, self._channel)


class _AliasEvents:
    def __init__(self, alias: str, channel: Channel) -> None:
        self._alias, self._channel = alias, channel

    def add(self, asset: Any, *, extra: Mapping[str, Any]) -> None:
        """Announce an asset at the end of the task."""
        self._channel.ask("asset_event", alias=self._alias, uri=asset.uri, extra=dict(extra))


class _ChannelHandler(logging.Handler):
    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._channel.send("log", level=record.levelno, message=self.format(record))
        except LostAirflowError:
            # It ends this process.
            return


@contextmanager
def _log_to(channel: Channel) -> Iterator[None]:
    """Send log records to the Airflow task, which writes them with their levels."""
    handler = _ChannelHandler(channel)
    # The DAG file writes the texts as they are.
    handler.setFormatter(PrintableFormatter("%(message)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


@contextmanager
def _terminating() -> Iterator[Callable[[], bool]]:
    """Raise `Terminated` for the first SIGTERM: `finally` blocks release locks and end jobs.

    Yields:
        True from then on.
    """
    received: list[int] = []

    def terminate(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGTERM, before)
