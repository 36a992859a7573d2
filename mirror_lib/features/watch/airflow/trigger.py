"""The trigger of a flow with `mirror.schedule = on-new-records`. It runs in Airflow's triggerer.

All triggers of a file share one poller (`shared_stream_key`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from mirror_lib.airflow import load_in_triggerer

if TYPE_CHECKING:
    from mirror_lib.config.model import MirrorConfig
    from mirror_lib.features.watch.poller import FilePoller, Start

    _Starts = Mapping[str, Start]


#: Running triggers by file and flow. A DAG that is paused has none, and its flow needs no polls. A trigger may begin
#: before its predecessor has ended.
_running: dict[str, Counter[str]] = {}


class NewRecordsTrigger(BaseEventTrigger):  # type: ignore[misc]  # Airflow is untyped here
    """Sends an event if a flow has new records to copy."""

    def __init__(self, *, flow: str, config_path: str) -> None:
        """Args:
        flow: its name, `A->B`.
        config_path: its configuration file, on the machine of the triggerer.
        """
        super().__init__()
        self.flow = flow
        self.config_path = config_path

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and arguments. Airflow stores them: a change makes another trigger."""
        return f"{__name__}.{type(self).__name__}", {"flow": self.flow, "config_path": self.config_path}

    def shared_stream_key(self) -> Hashable | None:
        """Return the same key for all triggers of a file."""
        return "mirror: new records", self.config_path

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[_Starts]:
        """Yield the starts of all flows of the file after each poll. Errors never end it: the poller logs them."""
        loop = asyncio.get_running_loop()
        path = Path(kwargs["config_path"])
        # Only the newest counts: it has the starts of all flows so far.
        newest: asyncio.Queue[_Starts] = asyncio.Queue()

        def load() -> MirrorConfig:
            return asyncio.run_coroutine_threadsafe(load_in_triggerer(path), loop).result()

        # The import takes a second, in which no other trigger would run.
        poller_class = await asyncio.to_thread(_poller_class)
        running = _running_of(kwargs["config_path"])
        poller = poller_class(
            path, load, lambda starts: _hand_over(loop, newest, starts), is_watched=lambda flow: running[flow] > 0
        )
        poller.start()
        try:
            while True:
                yield await newest.get()
        finally:
            await asyncio.to_thread(poller.stop)

    async def filter_shared_stream(self, shared_stream: AsyncIterator[_Starts]) -> AsyncIterator[TriggerEvent]:
        """Yield an event for each start of this flow."""
        running, seen = _running_of(self.config_path), 0
        running[self.flow] += 1
        try:
            async for starts in shared_stream:
                start = starts.get(self.flow)
                if start is not None and start.number != seen:
                    seen = start.number
                    yield TriggerEvent(dict(start.payload))
        finally:
            running[self.flow] -= 1

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """As Airflow does it for triggers that share a stream, for this trigger alone."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event


def _running_of(config_path: str) -> Counter[str]:
    return _running.setdefault(config_path, Counter())


def _poller_class() -> type[FilePoller]:
    # Airflow imports this module to parse DAGs too.
    from mirror_lib.features.watch.poller import FilePoller

    return FilePoller


def _hand_over(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[_Starts], starts: _Starts) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(queue.put_nowait, starts)
