"""A `replicate` that is deferred while its driver runs: what it does with drivers of earlier attempts, and refusals."""

from __future__ import annotations

import asyncio
import errno
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from sqlalchemy import update

from mirror_lib.airflow import retries
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.spark import connection
from mirror_lib.airflow.spark.connect_driver import DRIVER_PYTHON
from mirror_lib.airflow.spark.connection import is_deferrable
from mirror_lib.airflow.spark.outcome import ReplicationRunError
from mirror_lib.errors import ConfigurationError, LedgerError
from mirror_lib.features.warm_spark.airflow import deferred_operator, driver_trigger
from mirror_lib.features.warm_spark.airflow.deferred_operator import DeferredReplicateOperator
from mirror_lib.features.warm_spark.airflow.detached_driver import FOLDER_PREFIX
from mirror_lib.features.warm_spark.airflow.driver_trigger import DriverTrigger
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError
from mirror_lib.features.warm_spark.tables import DetachedDrivers, DriverRow
from mirror_lib.ledger.store import Ledger
from tests.support.airflow.stand_in_submit import DONE
from tests.support.flow_configs import flow_config
from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.tables import METADATA

_CONNECT = '{"conn_type": "spark_connect", "host": "127.0.0.1", "port": 1}'
_ENDED = {"driver": "d", "state": "ended"}
_UNKNOWN = {"driver": "d", "state": driver_trigger.UNKNOWN}


class Task:
    """A task of a DAG run, and the ledger of its flow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = write_flow(folder, LEDGER)
        self.ledger = Ledger.open(f"sqlite:///{folder}/ledger.sqlite3")
        self.ledger.migrate()
        self.operator = DeferredReplicateOperator(
            task_id="replicate", flow="A->B", config_path=str(self.file), conn_id="warm"
        )
        self.pushed: dict[str, Any] = {}
        #: Airflow gives every attempt another id.
        self.attempt = "first attempt"
        #: As Airflow has it.
        self.state = "running"

    def context(self, **choices: Any) -> Any:
        return {
            "params": {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False, **choices},
            "dag": SimpleNamespace(dag_id="mirror__A__B"),
            "run_id": "manual 1",
            "dag_run": SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1", start_date=None),
            "ti": SimpleNamespace(
                id=self.attempt,
                xcom_push=lambda key, value: self.pushed.update({key: value}),
                get_task_states=lambda **_: {"manual 1": {"replicate": self.state}},
            ),
        }

    def earlier(self, folder: Path | None = None, **choices: Any) -> DriverRow:
        """The driver `d` of an earlier attempt."""
        context = self.context(**choices)
        return DetachedDrivers(self.ledger).begin(
            id="d",
            flow="A->B",
            trigger=self.operator._trigger(context),
            request=self.operator._request(context),
            host=socket.gethostname(),
            folder=str(folder or self.folder),
            lease_seconds=60.0,
        )

    def execute(self) -> None:
        self.operator.execute(self.context())

    def resume(self, event: dict[str, str]) -> None:
        self.operator.resume(self.context(), event)

    def deferred(self, call: Callable[[], object]) -> DriverTrigger:
        with pytest.raises(TaskDeferred) as deferral:
            call()
        assert deferral.value.method_name == "resume"
        trigger = deferral.value.trigger
        assert isinstance(trigger, DriverTrigger)
        return trigger

    def trigger(self, *, is_known: bool = True) -> DriverTrigger:
        """A trigger that waits for the driver `d`; the triggerer says whose it is unless the task is not known."""
        trigger = DriverTrigger(driver="d", flow="A->B", config_path=str(self.file))
        if is_known:
            trigger.task_instance = SimpleNamespace(id=self.attempt, dag_id="d", run_id="r", task_id="replicate")
        return trigger

    @property
    def watch(self) -> driver_trigger._Watch | None:
        return driver_trigger._watches.get(str(self.file))

    @property
    def has_cancelled(self) -> bool:
        """True if the driver `d` is cancelled."""
        row = DetachedDrivers(self.ledger).find("d")
        return row.cancelled_at is not None


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    monkeypatch.setenv(DRIVER_PYTHON, shutil.which("false") or "")
    monkeypatch.setenv("AIRFLOW_CONN_WARM", _CONNECT)
    monkeypatch.setenv(DRIVER_HOST_VARIABLE, str(tmp_path / "no-host" / "socket"))
    found = Task(tmp_path)
    with found.ledger:
        yield found


def test_the_next_attempt_waits_for_the_driver_of_an_earlier_one_and_reports_its_result(
    task: Task, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker of the first attempt has died; its driver copies."""
    caplog.set_level("INFO")
    folder = tmp_path / f"{FOLDER_PREFIX}1"
    folder.mkdir()
    (folder / "driver.log").write_text("a line of the driver\n")
    task.earlier(folder)

    assert task.deferred(task.execute).driver == "d"

    assert "this attempt waits for its end, and reports its result" in caplog.text
    DetachedDrivers(task.ledger).end("d", exit_code=0, report=DONE)
    task.resume(_ENDED)
    assert task.pushed[REPORT_KEY]["records"] == 5
    assert "a line of the driver" in caplog.text
    assert not folder.exists()


@pytest.mark.parametrize("why", ["cancelled", "other choices"])
def test_a_driver_with_other_choices_or_that_was_cancelled_is_waited_for_only(
    task: Task, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    caplog.set_level("INFO")
    task.earlier(**({"topics": ["t"]} if why == "other choices" else {}))
    if why == "cancelled":
        DetachedDrivers(task.ledger).cancel("d")

    assert task.deferred(task.execute).driver == "d"
    assert "this attempt waits for its end, and copies what is left then" in caplog.text

    DetachedDrivers(task.ledger).end("d", exit_code=0, report=DONE)
    # It starts a driver of its own, which fails at once.
    with pytest.raises(ReplicationRunError):
        task.resume(_ENDED)
    told = caplog.text
    assert "this attempt copies what is left" in told
    assert "The task is not deferred and keeps its worker slot: no response from a driver host" in told
    assert DetachedDrivers(task.ledger).running("A->B") is None


@pytest.mark.parametrize(
    ("code", "has_policies", "raised", "why"),
    [
        pytest.param(-9, True, ReplicationRunError, "killed by signal 9", id="a driver that died"),
        # Airflow 3.2 has no retry policies: the task itself has to raise what is not retried.
        pytest.param(3, False, AirflowFailException, "needs a decision", id="a decision, in Airflow 3.2"),
    ],
)
def test_a_driver_that_failed_is_retried_unless_a_decision_is_needed(
    task: Task, monkeypatch: pytest.MonkeyPatch, code: int, has_policies: bool, raised: type[Exception], why: str
) -> None:
    monkeypatch.setattr(retries, "HAS_RETRY_POLICIES", has_policies)
    task.earlier()
    DetachedDrivers(task.ledger).end("d", exit_code=code, report=None if code < 0 else {**DONE, "exit_code": code})

    with pytest.raises(raised, match=why):
        task.resume(_ENDED)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space left"), NoDriverHostError("no answer")])
def test_a_driver_that_could_not_be_started_is_not_waited_for_and_ends_if_it_was_started_after_all(
    task: Task, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The host's answer may be lost, though its driver runs."""
    runs: list[str] = []

    def fail(_module: str, arguments: Sequence[str], _environment: object, folder: Path) -> int:
        runs.extend(each.partition("=")[2] for each in arguments if each.startswith("--run-id="))
        assert folder.is_dir()
        raise error

    monkeypatch.setattr(deferred_operator, "start_detached", fail)

    # Without a host it starts a driver of its own, which fails at once.
    with pytest.raises((OSError, ReplicationRunError)) as failure:
        task.execute()

    assert isinstance(failure.value, OSError) is isinstance(error, OSError)
    (driver,) = runs
    row = DetachedDrivers(task.ledger).find(driver)
    assert not Path(row.folder).exists()
    assert DetachedDrivers(task.ledger).running("A->B") is None
    assert DetachedDrivers(task.ledger).renew(driver)


@pytest.mark.parametrize("how", ["killed", "marked"])
def test_a_task_that_was_ended_before_it_could_wait_cancels_its_driver(task: Task, how: str) -> None:
    """Airflow refuses to defer it, and no trigger is there to cancel the driver.

    It calls `on_kill` for a SIGTERM and lets the task go on. A task that was marked gets a SIGTERM with the next
    heartbeat only, unless it has ended until then.
    """
    task.earlier()
    if how == "killed":
        task.operator.on_kill()
    else:
        task.state = "failed"

    with pytest.raises(AirflowException, match="the task was ended"):
        task.execute()

    assert task.has_cancelled


@pytest.mark.parametrize("beginning", ["execute", "resume"])
def test_a_task_that_is_ended_when_it_has_begun_to_wait_cancels_its_driver_without_its_file(
    task: Task, beginning: str
) -> None:
    """Reading the file asks Airflow for secrets, which hangs in a signal handler: the task may be asking just then.

    A trigger that cannot read the ledger resumes the task, so that its worker looks at the driver.
    """
    task.earlier()
    begin = {"execute": task.execute, "resume": partial(task.resume, _UNKNOWN)}[beginning]
    assert task.deferred(begin).driver == "d"
    task.file.unlink()

    task.operator.on_kill()

    assert task.has_cancelled


@pytest.mark.parametrize(
    ("connection", "host", "what"),
    [
        ('{"conn_type": "spark", "host": "local[*]"}', "socket", "needs a Spark Connect server .* it names local"),
        (_CONNECT, None, "needs a driver host, but MIRROR_DRIVER_HOST is not set"),
    ],
)
def test_a_task_that_could_not_be_deferred_is_refused(
    task: Task, monkeypatch: pytest.MonkeyPatch, connection: str, host: str | None, what: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WARM", connection)
    if host is None:
        monkeypatch.delenv(DRIVER_HOST_VARIABLE)

    with pytest.raises(ConfigurationError, match=what):
        task.execute()


async def test_triggers_of_a_file_end_with_their_own_drivers_and_share_one_watch(task: Task) -> None:
    for driver in ("one", "other"):
        DetachedDrivers(task.ledger).begin(
            id=driver, flow=driver, trigger="t", request="", host="h", folder="/f", lease_seconds=60.0
        )
    one, other = (DriverTrigger(driver=each, flow=each, config_path=str(task.file)) for each in ("one", "other"))

    first, second = (asyncio.ensure_future(anext(each.run())) for each in (one, other))
    while task.watch is None or len(task.watch.waiting) < 2:
        await asyncio.sleep(0)
    watch = task.watch
    await asyncio.to_thread(DetachedDrivers(task.ledger).end, "one", exit_code=0, report=None)
    assert (await first).payload == {"driver": "one", "state": "ended"}
    assert list(watch.waiting) == ["other"]
    await asyncio.to_thread(DetachedDrivers(task.ledger).end, "other", exit_code=0, report=None)
    assert (await second).payload == {"driver": "other", "state": "ended"}


def _make_silent(task: Task) -> None:
    row = task.earlier()
    with task.ledger.database.write() as connection:
        long_ago = row.seen_at - timedelta(seconds=2 * row.lease_seconds)
        connection.execute(update(METADATA.tables["detached_driver"]).values(seen_at=long_ago))


async def test_a_driver_that_could_not_renew_its_row_in_time_has_not_died_if_it_renews_it_soon(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger was away for two minutes, or its clock was set: the trigger asks every two seconds, and the driver
    renews its row every five.
    """
    monkeypatch.setattr(driver_trigger, "_POLL_SECONDS", 0.01)
    _make_silent(task)

    told = asyncio.ensure_future(anext(task.trigger(is_known=False).run()))
    watch = driver_trigger._watches.setdefault(str(task.file), driver_trigger._Watch(str(task.file)))
    while not told.done() and "d" not in watch.silent_since:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(DetachedDrivers(task.ledger).renew, "d")
    while not told.done() and "d" in watch.silent_since:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(DetachedDrivers(task.ledger).end, "d", exit_code=0, report=None)

    assert (await told).payload == _ENDED


async def test_a_driver_that_stays_silent_has_died(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    _make_silent(task)
    monkeypatch.setattr(driver_trigger, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(driver_trigger, "_SILENT_SECONDS", 0.1)

    event = await anext(task.trigger(is_known=False).run())

    assert event.payload == {"driver": "d", "state": "silent"}


@pytest.mark.parametrize(("state", "is_cancelled"), [("deferred", False), ("failed", True), (None, True)])
async def test_a_driver_for_which_another_triggerer_waits_continues(
    task: Task, monkeypatch: pytest.MonkeyPatch, state: str | None, is_cancelled: bool
) -> None:
    """Without an answer about the task's state the driver is cancelled: Airflow's time for it is limited."""
    task.earlier()
    released = threading.Event()
    DetachedDrivers(task.ledger).wait("d", task.attempt)

    def answer(_: object) -> str | None:
        if state is None:
            released.wait(60)
        return state

    monkeypatch.setattr(driver_trigger, "_state", answer)
    monkeypatch.setattr(driver_trigger, "_STATE_SECONDS", 1.0)

    try:
        await task.trigger().on_kill()
    finally:
        released.set()

    assert task.has_cancelled is is_cancelled


async def test_a_driver_of_a_cleared_task_is_cancelled_though_the_next_attempt_waits_for_it_already(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt was faster than the triggerer, whose first question to Airflow takes seconds."""
    task.earlier()
    trigger = task.deferred(task.execute)
    trigger.task_instance = task.trigger().task_instance
    monkeypatch.setattr(driver_trigger, "_state", lambda _: "deferred")
    task.attempt = "next attempt"
    assert task.deferred(task.execute).driver == "d"

    await trigger.on_kill()

    assert task.has_cancelled


class _Slow:
    """A call that ends only when it is released."""

    def __init__(self, answer: str | None = None) -> None:
        self.answer = answer
        self.called, self.released = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> str | None:
        self.called.set()
        self.released.wait(60)
        return self.answer

    async def cancel_meanwhile(self, waiting: asyncio.Future[Any]) -> None:
        await asyncio.to_thread(self.called.wait, 60)
        await _cancel(waiting)
        self.released.set()
        await _all_else()


async def test_a_driver_is_cancelled_though_airflow_cancels_the_cancelling(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The triggerer cancels a trigger again each second until it has ended, `on_kill` included (Airflow 3.3)."""
    task.earlier()
    state = _Slow("failed")
    monkeypatch.setattr(driver_trigger, "_state", state)

    await state.cancel_meanwhile(asyncio.ensure_future(task.trigger().on_kill()))

    assert task.has_cancelled


async def test_a_driver_is_cancelled_when_the_ledger_answers_again(
    task: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task.earlier()
    opened = driver_trigger._open_ledger
    answers = [OSError("no route to the ledger"), LedgerError("it is locked")]

    async def open_ledger(config_path: str) -> Ledger:
        if answers:
            raise answers.pop()
        return await opened(config_path)

    monkeypatch.setattr(driver_trigger, "_open_ledger", open_ledger)
    monkeypatch.setattr(driver_trigger, "_POLL_SECONDS", 0.01)

    # Also of a task that the triggerer does not name.
    with caplog.at_level("INFO"):
        await task.trigger(is_known=False).on_kill()

    assert task.has_cancelled
    assert caplog.text.count("driver d is not cancelled yet") == 1
    assert "driver d is cancelled" in caplog.text


async def test_a_driver_that_cannot_be_cancelled_is_named_with_a_way_on(
    task: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task.earlier()

    async def open_ledger(_: str) -> Ledger:
        raise LedgerError("it is locked")

    monkeypatch.setattr(driver_trigger, "_open_ledger", open_ledger)
    monkeypatch.setattr(driver_trigger, "_UNKNOWN_SECONDS", 0.0)

    await task.trigger(is_known=False).on_kill()

    assert "flow A->B: driver d was not cancelled and still copies: it is locked" in caplog.text
    assert "clear the task and mark its next attempt as failed" in caplog.text


@pytest.mark.parametrize(("state", "is_cancelled"), [("deferred", False), ("failed", True), (None, False)])
async def test_in_airflow_3_2_a_trigger_that_is_cancelled_cancels_the_driver_of_a_task_that_was_ended(
    task: Task, monkeypatch: pytest.MonkeyPatch, state: str | None, is_cancelled: bool
) -> None:
    """It is cancelled too when the triggerer ends, where Airflow tells no states any more: the driver continues."""
    task.earlier()
    DetachedDrivers(task.ledger).wait("d", task.attempt)

    def answer(_: object) -> str:
        if state is None:
            raise EOFError("the supervisor is gone")
        return state

    monkeypatch.setattr(driver_trigger, "_HAS_ON_KILL", False)
    monkeypatch.setattr(driver_trigger, "_state", answer)

    waiting = asyncio.ensure_future(anext(task.trigger().run()))
    while task.watch is None or not task.watch.waiting:
        await asyncio.sleep(0)
    await _cancel(waiting)
    await _all_else()

    assert task.has_cancelled is is_cancelled


async def test_in_airflow_3_2_a_trigger_that_is_cancelled_while_it_still_imports_cancels_the_driver(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first import takes seconds on a busy machine, and the task was marked meanwhile."""
    task.earlier()
    imports = _Slow()
    monkeypatch.setattr(driver_trigger, "_HAS_ON_KILL", False)
    monkeypatch.setattr(driver_trigger, "_runtime_task_instance", imports)
    monkeypatch.setattr(driver_trigger, "_state", lambda _: "failed")

    await imports.cancel_meanwhile(asyncio.ensure_future(anext(task.trigger().run())))

    assert task.has_cancelled


async def _cancel(waiting: asyncio.Future[Any]) -> None:
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def _all_else() -> None:
    """Wait for what goes on by itself, as the triggerer's event loop does."""
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)


def test_no_task_is_deferrable_in_an_airflow_without_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_config(airflow_deferrable=True)
    assert is_deferrable(flow)

    monkeypatch.setattr(connection, "is_external", lambda: True)

    assert not is_deferrable(flow), "no trigger could wait"
