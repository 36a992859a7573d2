"""The trigger of a task that waits for its detached driver. It runs in Airflow's triggerer.

All triggers of a file share one query of the ledger.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from mirror_lib.airflow import load_in_triggerer

if TYPE_CHECKING:
    from mirror_lib.config.model import MirrorConfig
    from mirror_lib.features.warm_spark.tables import DetachedDrivers
    from mirror_lib.ledger.store import Ledger

_log = logging.getLogger(__name__)
#: The event's value of `state` if the ledger cannot be read here; the others are those of `DriverState`.
UNKNOWN: Final = "unknown"
_POLL_SECONDS = 2.0
#: After this time without an answer of the ledger the task itself has a look, and reports the ledger's error; a
#: cancellation is given up.
_UNKNOWN_SECONDS = 300.0
#: A driver has died if this process, too, has seen it silent for this time. After the ledger was away, or its clock was
#: set, a driver that lives first has to connect (10 s) and to renew its row (every 5 s).
_SILENT_SECONDS = 20.0
_DEFERRED = "deferred"
#: The triggerer loads an API server for its first answer.
_STATE_SECONDS = 30.0
#: Airflow 3.2 only cancels a trigger, also when the triggerer ends.
_HAS_ON_KILL = hasattr(BaseTrigger, "on_kill")
#: The event loop itself keeps no task alive.
_cancellations: set[asyncio.Task[None]] = set()


class DriverTrigger(BaseTrigger):  # type: ignore[misc]  # Airflow is untyped here
    """Sends an event when a driver has ended, or has died."""

    def __init__(self, *, driver: str, flow: str, config_path: str) -> None:
        """Args:
        driver: the id of its row in the ledger.
        flow: its name, for Airflow's page of triggers.
        config_path: its configuration file, on the machine of the triggerer.
        """
        super().__init__()
        self.driver = driver
        self.flow = flow
        self.config_path = config_path

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and arguments."""
        arguments = {"driver": self.driver, "flow": self.flow, "config_path": self.config_path}
        return f"{__name__}.{type(self).__name__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the end of the driver."""
        try:
            # The first import takes seconds, which a user who has marked the task would wait for the end of its copy.
            await asyncio.to_thread(_runtime_task_instance)
            state = await _end_of(self.config_path, self.driver)
        except asyncio.CancelledError:
            if not _HAS_ON_KILL:
                # Maybe the triggerer only ends, and asks nobody any more.
                self._begin_cancellation(if_state_unknown=False)
            raise
        yield TriggerEvent({"driver": self.driver, "state": state})

    async def on_kill(self) -> None:
        """Cancel the driver: the task was marked or cleared, its run was deleted, or has timed out.

        Airflow also calls this when another triggerer has taken over the trigger; then the driver continues.

        The cancellation continues when this call is cancelled: Airflow 3.3 cancels a trigger again and again, about
        once a second, until it has ended (`TriggerRunner.cancel_triggers`), and with it `on_kill`.
        """
        await asyncio.shield(self._begin_cancellation(if_state_unknown=True))

    def _begin_cancellation(self, *, if_state_unknown: bool) -> asyncio.Task[None]:
        cancellation = asyncio.create_task(self._cancel_driver(if_state_unknown))
        _cancellations.add(cancellation)
        cancellation.add_done_callback(_cancellations.discard)
        return cancellation

    async def _cancel_driver(self, if_state_unknown: bool) -> None:
        """Cancel the driver, also if the ledger answers only after a while.

        Args:
            if_state_unknown: whether to cancel it if Airflow does not return the state of the task.
        """
        started, is_logged = time.monotonic(), False
        is_deferred = await self._is_deferred(if_unknown=not if_state_unknown)
        while True:
            try:
                await self._cancel_unless_another_waits(is_deferred)
                return
            except Exception as error:  # Of the ledger, or of Airflow's secrets backends.
                if time.monotonic() - started >= _UNKNOWN_SECONDS:
                    _log.error(
                        "flow %s: driver %s was not cancelled and still copies: %s. To end it, clear the task and mark "
                        "its next attempt as failed.",
                        *(self.flow, self.driver, error),
                    )
                    return
                if not is_logged:
                    _log.warning("flow %s: driver %s is not cancelled yet: %s", self.flow, self.driver, error)
                is_logged = True
            await asyncio.sleep(_POLL_SECONDS)

    async def _cancel_unless_another_waits(self, is_deferred: bool) -> None:
        ledger = await _open_ledger(self.config_path)
        try:
            # Read after the task's state: a next attempt records itself before it is deferred.
            if is_deferred and await asyncio.to_thread(self._is_waiter, ledger):
                _log.info("flow %s: another triggerer waits for driver %s.", self.flow, self.driver)
            elif await asyncio.to_thread(_drivers(ledger).cancel, self.driver):
                _log.info("flow %s: driver %s is cancelled.", self.flow, self.driver)
        finally:
            await asyncio.to_thread(ledger.close)

    def _is_waiter(self, ledger: Ledger) -> bool:
        """True if this attempt waits for the driver, and not the next one of a cleared task."""
        row = _drivers(ledger).find(self.driver)
        return row is not None and self.task_instance is not None and row.waiter == str(self.task_instance.id)

    async def _is_deferred(self, *, if_unknown: bool) -> bool:
        """True if the task still waits for a driver."""
        instance = self.task_instance
        if instance is None:
            return if_unknown
        try:
            state = await asyncio.wait_for(sync_to_async(_state, thread_sensitive=False)(instance), _STATE_SECONDS)
        except Exception:  # Of Airflow's API, or no answer.
            _log.warning("flow %s: the state of the task is unknown.", self.flow, exc_info=True)
            return if_unknown
        return state == _DEFERRED


def _runtime_task_instance() -> Any:
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return RuntimeTaskInstance


def _state(instance: Any) -> str | None:
    found = _runtime_task_instance().get_task_states(
        dag_id=instance.dag_id, task_ids=[instance.task_id], run_ids=[instance.run_id]
    )
    state = found.get(instance.run_id, {}).get(instance.task_id)
    return None if state is None else str(getattr(state, "value", state))


async def _open_ledger(config_path: str) -> Ledger:
    # The import takes a second, in which no other trigger would run.
    open_at = await asyncio.to_thread(_ledger_opener)
    return open_at(await load_in_triggerer(Path(config_path)))


def _ledger_opener() -> Callable[[MirrorConfig], Ledger]:
    from mirror_lib.ledger.location import ledger_url
    from mirror_lib.ledger.store import Ledger

    return lambda config: Ledger.open(ledger_url(config))


class _Watch:
    """Waits for all drivers of one file, with one query every two seconds."""

    def __init__(self, config_path: str) -> None:
        self._config_path = config_path
        self.waiting: dict[str, set[asyncio.Future[str]]] = {}
        #: When a driver was first seen silent, by the local clock.
        self.silent_since: dict[str, float] = {}
        self._ledger: Ledger | None = None
        self._task: asyncio.Task[None] | None = None

    async def end_of(self, driver: str) -> str:
        """Return the state in which a driver does not run any more."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(driver, set()).add(future)
        if self._task is None:
            self._task = asyncio.create_task(self._poll())
        try:
            return await future
        finally:
            # Also if this trigger is cancelled.
            futures = self.waiting.get(driver, set())
            futures.discard(future)
            if not futures:
                self.waiting.pop(driver, None)
                self.silent_since.pop(driver, None)

    async def _poll(self) -> None:
        answered, is_logged = time.monotonic(), False
        try:
            while self.waiting:
                try:
                    if self._ledger is None:
                        self._ledger = await _open_ledger(self._config_path)
                    # Only now, since the first import takes a second.
                    from mirror_lib.features.warm_spark.tables import DriverState

                    drivers = tuple(self.waiting)
                    found = await asyncio.to_thread(_drivers(self._ledger).states, drivers)
                    answered, is_logged = time.monotonic(), False
                    for driver in drivers:
                        state = found.get(driver)
                        if state is not DriverState.SILENT:
                            self.silent_since.pop(driver, None)
                        elif answered - self.silent_since.setdefault(driver, answered) < _SILENT_SECONDS:
                            continue
                        if state is not DriverState.RUNNING:
                            self._tell(driver, UNKNOWN if state is None else state.value)
                except Exception as error:  # Also of Airflow's secrets backends: the others must not wait for ever.
                    if not is_logged:
                        _log.error("%s: the ledger cannot be read, and is tried again: %s", self._config_path, error)
                    is_logged = True
                    self.silent_since.clear()
                    await self._close()
                    if time.monotonic() - answered >= _UNKNOWN_SECONDS:
                        for driver in tuple(self.waiting):
                            self._tell(driver, UNKNOWN)
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._task = None
            self.silent_since.clear()
            await self._close()

    def _tell(self, driver: str, state: str) -> None:
        self.silent_since.pop(driver, None)
        for future in self.waiting.pop(driver, set()):
            if not future.done():
                future.set_result(state)

    async def _close(self) -> None:
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            await asyncio.to_thread(ledger.close)


#: By file; a triggerer has one event loop.
_watches: dict[str, _Watch] = {}


async def _end_of(config_path: str, driver: str) -> str:
    return await _watches.setdefault(config_path, _Watch(config_path)).end_of(driver)


def _drivers(ledger: Ledger) -> DetachedDrivers:
    from mirror_lib.features.warm_spark.tables import DetachedDrivers

    return DetachedDrivers(ledger)
