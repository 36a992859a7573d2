"""Commands of the product, each in its own process, which can be killed or stopped at a point.

The processes are forked from one that has loaded the product, since loading it takes seconds. `mirror run` copies in
its own process instead of in a Spark job, except for a share of its runs; so does `mirror cutover run`. Only this
module and `protections` use the product; it contains no expectations.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mirror_lib.cli.run.command as cli_run
import mirror_lib.features.cutover.command as cli_cutover
from mirror_lib.cli import main as cli_main
from mirror_lib.cli.run.outcome import close_abandoned, read_report
from mirror_lib.cluster.admin.requests import AdminCalls
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.topics.position_format import PositionState
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.copy.job.command import main as job_main
from mirror_lib.copy.transfer.producer import TargetWriter
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.features.cutover import machine
from mirror_lib.features.cutover.context import Engine
from mirror_lib.features.cutover.job import main as cutover_main
from mirror_lib.features.cutover.steps import rollback
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.ledger.store import Ledger
from tools.model.clock import set_clock
from tools.model.protections import PROTECTIONS

_CONTEXT = multiprocessing.get_context("forkserver")
_SECONDS, _SPARK_SECONDS = 120.0, 600.0
#: Of cutovers that are killed; the same value as in the file for runs.
LEASE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Point:
    """Where a command ends or stops itself, or its clock jumps: the n-th occurrence of an event."""

    at: str
    nth: int
    how: signal.Signals | None
    #: Seconds that its clock is ahead from there on.
    clock: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """The output of a command."""

    #: Negative if a signal ended it.
    exit_code: int
    document: dict[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The partitions that it names as failed, with their reasons; whole failures without a topic."""
        named: list[dict[str, Any]] = list(self.document.get("failures") or [])
        error = self.document.get("error")
        return [*named, error] if isinstance(error, dict) else named

    @property
    def reasons(self) -> set[str]:
        """All reasons of failures."""
        return {str(each.get("reason")) for each in self.failures}


def prepare() -> None:
    """Fork from a process that has loaded the product. Call it once, before the first command."""
    _CONTEXT.set_forkserver_preload([__name__, "tools.model.warm"])


class Command:
    """A command that is running or stopped."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        *,
        point: Point | None = None,
        without: Iterable[str] = (),
        spark: bool = False,
        ids: Mapping[str, str] | None = None,
        clock: float = 0.0,
    ) -> None:
        """Start it.

        Args:
            words: arguments after `mirror`.
            folder: for its output, and its state.
            point: where it ends or stops itself.
            without: disabled protections.
            spark: start its Spark job, instead of copying in its own process.
            ids: cluster ids that it sees in place of others: a restored cluster keeps everything except its id. A Spark
                job would see the true ones.
            clock: seconds that its clock is ahead; not with a Spark job.
        """
        assert not (spark and (ids or clock))
        self.output = folder / f"command-{os.urandom(4).hex()}"
        self.stopped_at: float | None = None
        self._seconds = _SPARK_SECONDS if spark else _SECONDS
        arguments = (list(words), str(self.output), str(folder), point, tuple(without), spark, dict(ids or {}), clock)
        self._process = _CONTEXT.Process(target=_serve, args=arguments)
        self._process.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def finish(self) -> Said | None:
        """Wait for its end; return None if it has stopped itself."""
        for _ in range(int(self._seconds * 20)):
            self._process.join(0.05)
            if self._process.exitcode is not None:
                return self._said(self._process.exitcode)
            if _is_stopped(self.pid):
                self.stopped_at = time.monotonic()
                return None
        self.kill()
        return Said(-9, text=f"did not end within {self._seconds:.0f} s; killed. {self._text()[-2000:]}")

    def wake(self) -> Said | None:
        """Continue a stopped command, and wait for its end."""
        os.kill(self.pid, signal.SIGCONT)
        return self.finish()

    def kill(self) -> None:
        """Kill it, like a crash."""
        self._process.kill()
        self._process.join()

    def _text(self) -> str:
        file = self.output.with_suffix(".err")
        return file.read_text(errors="replace") if file.exists() else ""

    def _said(self, exit_code: int) -> Said:
        file = self.output.with_suffix(".out")
        text = file.read_text(errors="replace") if file.exists() else ""
        try:
            document = json.loads(text)
        except ValueError:
            document = {}
        return Said(exit_code, document, (text if not document else "") + self._text())


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _serve(
    words: list[str],
    output: str,
    state: str,
    point: Point | None,
    without: tuple[str, ...],
    spark: bool,
    ids: dict[str, str],
    clock: float,
) -> None:
    for number, suffix in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(output + suffix, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ["MIRROR_STATE_DIR"] = state
    if not spark:
        setattr(cli_run, "copy_by_job", _copy_here)  # noqa: B010
    setattr(cli_cutover, "_run_job", _take_on_here)  # noqa: B010
    for module in (machine, rollback):
        setattr(module, "_LEASE_SECONDS", LEASE_SECONDS)  # noqa: B010
    if ids:
        _show_ids(ids)
    for name in without:
        PROTECTIONS[name]()
    if clock:
        set_clock(clock)
    if point is not None:
        _arm(point)
    sys.argv = ["mirror", *words]
    try:
        cli_main.main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _copy_here(_output: Any, arguments: Any, files: Any, _master: str, ledger: Any, *, transforms: bool) -> Any:
    assert not transforms
    files.report.parent.mkdir(parents=True, exist_ok=True)
    try:
        return read_report(files, job_main(arguments.command_line(), lambda _flow: _bins))
    finally:
        close_abandoned(ledger, arguments.run_id)


def _take_on_here(_output: Any, arguments: list[str], *_: Any) -> int:
    return cutover_main(arguments, lambda _name: Engine(copy=lambda: _bins, compare=lambda _plan: run_locally(1)))


def _show_ids(ids: Mapping[str, str]) -> None:
    true_id = AdminCalls.cluster_id

    def shown_id(self: AdminCalls) -> str | None:
        found = true_id(self)
        return None if found is None else ids.get(found, found)

    setattr(AdminCalls, "cluster_id", shown_id)  # noqa: B010


def _bins(job: Any) -> list[Any]:
    with ThreadPoolExecutor(max_workers=len(job.bins)) as pool:
        found = pool.map(lambda number: copy_bin(job, number), range(len(job.bins)))
        return [result for results in found for result in results]


def _arm(point: Point) -> None:
    left = point.nth
    write, finish, produce = PositionStore.write, Ledger.finish_run, RawClient.produce
    send_over = TargetWriter._send_over  # noqa: SLF001

    def reach(name: str) -> None:
        nonlocal left
        if name == point.at:
            left -= 1
            if left == 0 and point.how is None:
                set_clock(point.clock)
            elif left == 0 and point.how is not None:
                # To this thread: after a signal to the process, the thread would continue until another one has
                # received it.
                signal.pthread_kill(threading.get_ident(), point.how)

    def write_at(store: Any, positions: Any, *more: Any, **named: Any) -> Any:
        listed = list(positions)
        closes = any(each.state is PositionState.CLOSED for each in listed)
        if closes:
            reach("before-closed")
        done = write(store, listed, *more, **named)
        reach("closed" if closes else "opened")
        return done

    def finish_at(*more: Any, **named: Any) -> Any:
        reach("before-end")
        return finish(*more, **named)

    def produce_at(*more: Any, **named: Any) -> Any:
        reach("before-produce")
        sent = produce(*more, **named)

        async def answered() -> Any:
            answer = await sent
            reach("produced")
            return answer

        return answered() if point.at == "produced" else sent

    def send_over_at(self: Any, slot: Any) -> Any:
        if self._queues.get(slot):
            reach("before-look")
        return send_over(self, slot)

    for owner, name, wrapper in (
        (TargetWriter, "_send_over", send_over_at),
        (PositionStore, "write", write_at),
        (Ledger, "finish_run", finish_at),
        (RawClient, "produce", produce_at),
    ):
        setattr(owner, name, wrapper)
