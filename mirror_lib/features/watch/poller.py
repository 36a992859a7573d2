"""Polls the sources of a file's flows for new records, in a thread of its own, and says which flows are to run.

One poller serves all flows of a file. Each source cluster is polled on its own, so that an unreachable one delays no
other. Idle flows cost their share of the requests; the ledger is read only for flows whose latest offsets have changed.
Flows for which no trigger runs cost nothing.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.file.stamps import are_unchanged
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.schedule import parse_interval
from mirror_lib.errors import MirrorError
from mirror_lib.features.watch.decision import NewestRun, StartRule
from mirror_lib.features.watch.manifest import POLL
from mirror_lib.features.watch.source import SourceLog, source_connection
from mirror_lib.ledger.handovers import all_with_handovers
from mirror_lib.ledger.location import ledger_url
from mirror_lib.ledger.rows import RunState
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.observed import save_step
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)

#: Name of the watch among the sync steps on the page.
STEP = "watch_new_records"
#: How often new topics are looked for, and the file is checked for changes.
_TOPICS_SECONDS, _FILE_SECONDS = 30.0, 15.0
_SHORTEST_RETRY, _LONGEST_RETRY = 2.0, 30.0


@dataclass(frozen=True, slots=True)
class Start:
    """A run of a flow that is to start."""

    #: Counts the starts of the flow.
    number: int
    #: Why, as plain data for Airflow's event.
    payload: Mapping[str, Any]


Publish = Callable[[Mapping[str, Start]], None]


@dataclass(slots=True)
class _Flow:
    rule: StartRule = field(default_factory=StartRule)
    start: Start | None = None


class FilePoller:
    """The poller of one configuration file. `start` returns at once, `stop` when the thread has ended."""

    def __init__(
        self,
        path: Path,
        load: Callable[[], MirrorConfig],
        publish: Publish,
        is_watched: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Args:
        load: reads the file; called in a thread.
        publish: takes the starts of all flows so far, by flow, after each poll of a source; called in a thread.
        is_watched: whether a start of a flow would be noticed, which may change; called in a thread.
        """
        self._path = path
        self._load = load
        self._publish = publish
        self.is_watched = is_watched
        self._flows: dict[str, _Flow] = {}
        #: The last message of a problem, by its subject: each is logged once.
        self._logged: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name=f"watch {path.name}", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = threading.Event()
        #: Why it could not begin.
        self._failure: OSError | None = None

    def start(self) -> None:
        """Begin to poll.

        Raises:
            OSError: it cannot, for example because this process has too many open files.
        """
        self._thread.start()
        self._begun.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the polls, and close the connections."""
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError), asyncio.Runner() as runner:
                runner.run(self._main())
        except OSError as error:
            if self._begun.is_set():
                raise
            self._failure = error
        finally:
            # `start` waits for it, in the event loop of all triggers.
            self._begun.set()

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._begun.set()
        config: MirrorConfig | None = None
        sources: asyncio.Task[None] | None = None
        try:
            while True:
                if config is None or not are_unchanged(config.sources):
                    read = await self._read()
                    if read is not None:
                        await _ended(sources)
                        config, sources = read, asyncio.create_task(self._poll_all(read))
                elif sources is not None and (error := _error_of(sources)) is not None:
                    # Nobody else would notice: the triggers of the file only wait.
                    _log.error(
                        "%s: internal error, polling begins anew; please report it with this log.",
                        self._path,
                        exc_info=error,
                    )
                    sources = asyncio.create_task(self._poll_all(config))
                await asyncio.sleep(_FILE_SECONDS)
        finally:
            await _ended(sources)

    async def _read(self) -> MirrorConfig | None:
        """The file; None if it cannot be used now: the flows of the last good one stay watched."""
        try:
            config = await asyncio.to_thread(self._load)
        except Exception as error:  # Also of Airflow's secrets backends: polling must not end.
            self._log_once("file", f"{self._path}: cannot be read, so flows are watched as before: {error}")
            return None
        self._logged.pop("file", None)
        return config

    async def _poll_all(self, config: MirrorConfig) -> None:
        # Settings of a connection may hold what cannot be hashed.
        by_source: list[tuple[Connection, dict[str, FlowConfig]]] = []
        for flow in config.enabled_flows:
            if flow.starts_on_new_records:
                try:
                    connection = source_connection(flow)
                except MirrorError as error:
                    self._log_once(str(flow.flow), f"flow {flow.flow} is not watched: {error}")
                    continue
                same = next((flows for known, flows in by_source if known == connection), None)
                if same is None:
                    by_source.append((connection, same := {}))
                same[str(flow.flow)] = flow
        async with asyncio.TaskGroup() as tasks:
            for connection, flows in by_source:
                alias = ", ".join(sorted({flow.flow.source for flow in flows.values()}))
                source = _SourcePoll(self, config, flows, replace(connection, cluster=alias))
                tasks.create_task(source.forever())

    def _log_once(self, subject: str, text: str) -> bool:
        if self._logged.get(subject) == text:
            return False
        self._logged[subject] = text
        _log.error("%s", text)
        return True

    def flow(self, name: str) -> _Flow:
        """What is known about a flow; it survives changes of the file."""
        return self._flows.setdefault(name, _Flow())

    def forget(self, name: str) -> None:
        """Drop what is known about a flow: later its stored positions decide, as after a start of the triggerer."""
        self._flows.pop(name, None)

    def publish(self) -> None:
        """Hand over the starts so far."""
        self._publish({name: each.start for name, each in self._flows.items() if each.start is not None})


async def _ended(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


class _SourcePoll:
    """The polls of one source cluster."""

    def __init__(
        self, poller: FilePoller, config: MirrorConfig, flows: Mapping[str, FlowConfig], connection: Connection
    ) -> None:
        self._poller = poller
        self._config = config
        self._connection = connection
        self._flows = flows
        self._seconds = min(parse_interval(POLL.of(flow)).total_seconds() for flow in flows.values())
        #: Pause after the next error.
        self._retry = _SHORTEST_RETRY
        #: The reason of the problem that was logged; None if the cluster responds.
        self._problem: str | None = None
        self._ledger: Ledger | None = None
        self._ledger_problem = ""

    async def forever(self) -> None:
        """Poll, and begin anew after errors, with growing pauses."""
        try:
            while True:
                try:
                    while True:
                        await self._poll()
                        await asyncio.sleep(self._seconds)
                except Exception as error:  # Any error: other sources are polled as before, this one again later.
                    await self._silent(error)
                await asyncio.sleep(self._retry)
                self._retry = min(2 * self._retry, _LONGEST_RETRY)
        finally:
            self._close_ledger()

    async def _poll(self) -> None:
        """Poll over one set of connections, until no flow is watched."""
        if not self._watched_now():
            return
        async with AsyncExitStack() as stack:
            log = await stack.enter_async_context(SourceLog(self._connection))
            found_at, found_for = float("-inf"), frozenset[str]()
            while watched := self._watched_now():
                is_due = time.monotonic() - found_at >= _TOPICS_SECONDS
                if is_due or log.has_to_find_topics or found_for != watched.keys():
                    await log.find_topics(await asyncio.to_thread(self._with_handovers, watched))
                    found_at, found_for = time.monotonic(), frozenset(watched)
                ends = await log.latest()
                await self._responds()
                self._retry = _SHORTEST_RETRY
                if changed := self._changed(ends):
                    await asyncio.to_thread(self._decide, changed)
                self._poller.publish()
                await asyncio.sleep(self._seconds)

    def _watched(self) -> dict[str, FlowConfig]:
        return {name: flow for name, flow in self._flows.items() if self._poller.is_watched(name)}

    def _watched_now(self) -> dict[str, FlowConfig]:
        watched = self._watched()
        for name in self._flows.keys() - watched.keys():
            self._poller.forget(name)
        return watched

    async def _silent(self, error: Exception) -> None:
        reason = error.reason if isinstance(error, MirrorError) else type(error).__name__
        names = ", ".join(self._watched())
        if reason == self._problem or not names:
            return
        self._problem = reason
        text = f"cluster {self._connection.cluster} cannot be watched for new records, and is tried again: {error}"
        _log.error("flows %s: %s", names, text)
        await asyncio.to_thread(self._save_state, text)

    async def _responds(self) -> None:
        if self._problem is not None:
            self._problem = None
            _log.info("flows %s: cluster %s is watched again.", ", ".join(self._watched()), self._connection.cluster)
            await asyncio.to_thread(self._save_state, None)

    def _save_state(self, problem: str | None) -> None:
        """Show the watch among the flow's steps on the page."""
        outcome = {"skipped": None, "failed": int(problem is not None), "problems": [problem] if problem else []}
        try:
            ledger = self._opened_ledger()
            for name in self._watched():
                save_step(ledger, name, STEP, outcome)
        except MirrorError as error:
            self._cannot_read_ledger(error)

    def _with_handovers(self, flows: Mapping[str, FlowConfig]) -> dict[str, FlowConfig]:
        """Flows without topics that cutovers have moved away."""
        try:
            config = all_with_handovers(self._config, self._opened_ledger())
        except MirrorError as error:
            self._cannot_read_ledger(error)
            return dict(flows)
        return {str(flow.flow): flow for flow in config.flows if str(flow.flow) in flows}

    def _changed(self, ends: Mapping[str, dict[TopicPartition, int]]) -> dict[str, dict[TopicPartition, int]]:
        now = time.monotonic()
        return {name: latest for name, latest in ends.items() if self._poller.flow(name).rule.has_to_ask(latest, now)}

    def _decide(self, ends: Mapping[str, dict[TopicPartition, int]]) -> None:
        for name, latest in ends.items():
            known = self._poller.flow(name)
            wanted, behind = self._starts(name, known.rule, latest)
            if wanted:
                number = known.start.number + 1 if known.start is not None else 1
                topics = sorted({each.topic for each in wanted})
                payload = {"flow": name, "topics": topics[:20], "partitions": len(wanted), "records": behind}
                known.start = Start(number, payload)
                _log.info("flow %s: new records in %s, a run starts.", name, ", ".join(topics[:20]))

    def _starts(
        self, name: str, rule: StartRule, latest: dict[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], int | None]:
        """The ends that a run is to copy, and the number of offsets up to them; None if that is not known."""
        positions: dict[TopicPartition, int] = {}
        try:
            ledger = self._opened_ledger()
            newest = _newest_run(ledger, name)

            def read() -> dict[TopicPartition, int]:
                found = ledger.positions(name)
                positions.update({TopicPartition(row.topic, row.partition): row.offset + 1 for row in found})
                return positions

            wanted = rule.starts(latest, newest, read, time.monotonic())
        except MirrorError as error:
            self._cannot_read_ledger(error)
            return rule.starts_unseen(latest, time.monotonic()), None
        self._ledger_problem = ""
        return wanted, sum(max(end - positions.get(each, 0), 0) for each, end in wanted.items())

    def _opened_ledger(self) -> Ledger:
        # Preflight migrates it: until it has, reading fails, and each change starts a run.
        if self._ledger is None:
            self._ledger = Ledger.open(ledger_url(self._config))
        return self._ledger

    def _cannot_read_ledger(self, error: MirrorError) -> None:
        self._close_ledger()
        if error.reason != self._ledger_problem:
            self._ledger_problem = error.reason
            _log.warning("The ledger cannot be read, so every change starts a run: %s", error)

    def _close_ledger(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None


def _newest_run(ledger: Ledger, flow: str) -> NewestRun | None:
    rows = ledger.runs(flow, 1)
    if not rows:
        return None
    (row,) = rows
    is_active = row.state == RunState.RUNNING and not ledger.dead_runs(rows)
    ended = row.finished_at or row.heartbeat_at
    ago = 0.0 if is_active else (datetime.now(UTC) - ended).total_seconds()
    return NewestRun(row.id, is_active, row.state == RunState.SUCCEEDED, ago)
