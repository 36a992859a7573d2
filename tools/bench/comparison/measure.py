"""The whole comparison: start everything once, then load, copy by each copier, compare, delete, workload by
workload.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.comparison.broker_compilers import WarmUp, broker_work
from tools.bench.comparison.copying import Copy, largest_worker, measure_client_loop, measure_mirror, measure_mm2
from tools.bench.comparison.results import Measurement, Results
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier, CopySetup
from tools.bench.limit.measure import measure_limit
from tools.bench.limit.model import LimitRun, Ways, fastest_ways
from tools.bench.workloads.loading import load
from tools.bench.workloads.workload import BatchKind, Workload

#: Called with one sentence about the present step.
Log = Callable[[str], None]

_Step = TypeVar("_Step")

#: Brokers are warm after two to six dozen copies.
WARM_UP_COPIES = 80
#: And, after another copier has used them, after this many copies.
_COPIES_AFTER_ANOTHER = 4


@dataclass(frozen=True, slots=True)
class Options:
    """What to compare, and how.

    Attributes:
        copiers: of every workload; None for the usual ones of each.
        limit: measure fetching alone and producing alone as well.
        partitions: of every topic.
        processes: `tasks.max` of MM2 and this project, cores of the Spark session, processes of the client loop and
            the limit.
        rounds: how often everything is measured.
        warm_up: fill the page cache, and warm up brokers and session before the first copy, which would otherwise
            include the warm-up of their JVMs.
        warm_up_copies: maximum number of copies to warm up the brokers.
        keep: leave the folder with logs and data.
        settings: further properties of this project's flow.
    """

    workloads: tuple[Workload, ...]
    copiers: tuple[Copier, ...] | None = None
    limit: bool = True
    partitions: int = 8
    processes: int = 2
    rounds: int = 1
    warm_up: bool = True
    warm_up_copies: int = WARM_UP_COPIES
    keep: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def copiers_of(self, workload: Workload) -> tuple[Copier, ...]:
        """Return the copiers of a workload: by default all, the client loop only for workloads with a goal for it."""
        if self.copiers is not None:
            return self.copiers
        return tuple(each for each in Copier if each is not Copier.CLIENT_LOOP or workload.kind is BatchKind.SMALL)

    def others_of(self, workload: Workload) -> tuple[Copier, ...]:
        """Return the other copiers of a workload."""
        return tuple(each for each in self.copiers_of(workload) if each is not Copier.MIRROR)

    def measures_limit(self, workload: Workload) -> bool:
        """Return True if the limit of a workload is measured; over TLS it would measure TLS."""
        return self.limit and not workload.tls


def order(steps: Sequence[_Step], turn: int) -> tuple[_Step, ...]:
    """Return the steps in another order each time, so that no position has an advantage."""
    if not steps:
        return ()
    shift = turn % len(steps)
    return (*steps[shift:], *steps[:shift])


def run(options: Options, log: Log) -> Results:
    """Measure everything; everything that was started has ended when this returns or raises.

    Raises:
        BenchError: a copy failed.
        MirrorError: a cluster or MirrorMaker could not be started.
    """
    with _folder(keep=options.keep, log=log) as folder:
        log("starting two clusters and a Spark session")
        with (
            RelayHost(cores=options.processes, directory=folder) as host,
            started_pair(folder, full_page_cache=options.warm_up) as pair,
        ):
            return _Comparison(options, log, folder, pair, host).run()


#: Each way of a half is measured this often before the fastest is chosen.
_CHOOSING_TURNS = 3


class _Comparison:
    """Everything that is running, and the measurements so far."""

    def __init__(self, options: Options, log: Log, folder: Path, pair: Pair, host: RelayHost) -> None:
        self._options = options
        self._log = log
        self._folder = folder
        self._pair = pair
        self._host = host
        self._measured: list[Measurement] = []
        self._idle_seconds: list[float] = []
        self._idle_worker_bytes = 0
        self._limit_runs: list[LimitRun] = []
        #: How the halves of the workload are measured; nothing is chosen until the brokers are warm.
        self._ways: Ways | None = None

    def run(self) -> Results:
        self._host.wait_started()
        self._idle_worker_bytes = largest_worker(self._host, peak=False)
        for number, workload in enumerate(self._options.workloads):
            self._load(workload)
            for turn in range(self._options.rounds):
                for measure in order(self._steps(workload), number + turn):
                    measure(turn + 1)
            self._pair.source.delete([workload.name])
        return Results(
            self._options.workloads, tuple(self._measured), tuple(self._idle_seconds), tuple(self._limit_runs)
        )

    def _steps(self, workload: Workload) -> list[Callable[[int], None]]:
        """Return the measurements of each round."""
        if not self._options.measures_limit(workload):
            return [partial(self._copy, workload, copier) for copier in self._options.copiers_of(workload)]
        others = [partial(self._copy, workload, copier) for copier in self._options.others_of(workload)]
        return [*others, partial(self._copy_beside_limit, workload)]

    def _copy_beside_limit(self, workload: Workload, number: int) -> None:
        """Measure this project's copy and the limit right after each other, in alternating order."""
        if self._options.others_of(workload):
            # The first one would include the brokers' recovery from another copier.
            for _ in range(min(_COPIES_AFTER_ANOTHER, self._options.warm_up_copies)):
                self._copy_unrecorded(workload)
        own_too = Copier.MIRROR in self._options.copiers_of(workload)
        own = [partial(self._copy, workload, Copier.MIRROR)] if own_too else []
        for measure in order((*own, partial(self._measure_limit, workload)), number):
            measure(number)

    def _measure_limit(self, workload: Workload, number: int) -> None:
        self._log(f"{workload.name}: fetching alone and producing alone, round {number}")
        runs = self._halves(workload, number, self._ways)
        self._limit_runs += runs
        for run in runs:
            self._log(f"{workload.name}: {run.half.value} {run.way}, {run.records / run.seconds:,.0f} records/s")

    def _halves(self, workload: Workload, number: int, chosen: Ways | None = None) -> tuple[LimitRun, ...]:
        partitions, processes = self._options.partitions, self._options.processes
        return measure_limit(
            self._pair, workload, partitions=partitions, processes=processes, number=number, chosen=chosen
        )

    def _load(self, workload: Workload) -> None:
        self._ways = None
        self._log(f"{workload.name}: writing {workload.records:,} records")
        self._pair.source.create(workload.name, self._options.partitions)
        shape = load(self._pair.source.bootstrap_servers, workload, self._options.partitions)
        self._log(f"{workload.name}: {shape.batches:,} batches of {shape.mean_batch_bytes:,.0f} bytes on average")
        if self._options.warm_up:
            self._log(f"{workload.name}: warming the brokers up")
            self._warm_up(workload)

    def _warm_up(self, workload: Workload) -> None:
        # All ways of fetching and of producing: brokers become faster up to the fourth time.
        self._halves(workload, 0)
        for copier in self._options.others_of(workload):
            # Then the brokers' compilers have already seen its requests in the first round.
            self._copy_by(workload, copier, 0)
        brokers = [process.pid for process in self._pair.processes]
        warm_up, copies = WarmUp(), 0
        while not warm_up.done and copies < self._options.warm_up_copies:
            before = broker_work(brokers)
            self._copy_unrecorded(workload)
            compiled = broker_work(brokers).compiled_since(before)
            warm_up.copied(compiled)
            copies += 1
        self._log(
            f"{workload.name}: after {copies} copies the brokers' compilers take {warm_up.share:.1%} of their CPU"
        )
        if self._options.measures_limit(workload):
            self._ways = self._choose_ways(workload)

    def _copy_unrecorded(self, workload: Workload) -> None:
        """Copy to warm up the brokers; a warm session has also copied before."""
        self._copy_by(workload, Copier.MIRROR, 0)

    def _choose_ways(self, workload: Workload) -> Ways:
        runs = [run for turn in range(_CHOOSING_TURNS) for run in self._halves(workload, turn)]
        chosen = fastest_ways(runs, workload)
        names = ", ".join([*(way.name for way in chosen.fetching), *(way.name for way in chosen.producing)])
        self._log(f"{workload.name}: the limit is measured by {names}")
        return chosen

    def _copy(self, workload: Workload, copier: Copier, number: int) -> None:
        self._pair.settle()
        self._log(f"{workload.name}: copying with {copier.label}, round {number}")
        measurement, idle_seconds = self._copy_by(workload, copier, number)
        self._measured.append(measurement)
        if idle_seconds is not None:
            self._idle_seconds.append(idle_seconds)
        self._log(f"{workload.name}: {copier.label}, {measurement.window.rate:,.0f} records/s")

    def _copy_by(self, workload: Workload, copier: Copier, number: int) -> tuple[Measurement, float | None]:
        """Copy, and delete the copy; return also how long this project's run with nothing to copy took."""
        copy = self._planned(workload, copier, number)
        idle_seconds = None
        if copier is Copier.MIRROR:
            own = measure_mirror(self._pair, self._host, copy, self._idle_worker_bytes)
            measurement, idle_seconds = own.measurement, own.idle_seconds
        elif copier is Copier.CLIENT_LOOP:
            measurement = measure_client_loop(self._pair, copy)
        else:
            measurement = measure_mm2(self._pair, copy)
        self._pair.forget(f"{copy.setup.source_alias}.")
        return measurement, idle_seconds

    def _planned(self, workload: Workload, copier: Copier, number: int) -> Copy:
        transport = self._pair.tls if workload.tls else self._pair.clear
        setup = CopySetup(
            copier=copier,
            round=number,
            topic=workload.name,
            source_bootstrap=transport.source_bootstrap,
            target_bootstrap=transport.target_bootstrap,
            tasks=self._options.processes,
            client=transport.client,
            own=self._options.settings,
        )
        directory = self._folder / f"{workload.name}-{setup.source_alias}"
        return Copy(workload, setup, self._options.partitions, directory)


@contextmanager
def _folder(*, keep: bool, log: Log) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mirror-bench-"))
    try:
        yield folder
    finally:
        if keep:
            log(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
