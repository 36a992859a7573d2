"""`./run bench idle`: what flows cost that have nothing to copy: MM2 that runs, and DAG runs in a real Airflow.

Measured are Airflow without runs, a run of a DAG with one empty task, and a run of every flow, in which all sync steps
are due. Hours are computed from these: the runs of an hour, in addition to an Airflow that does nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mirror_lib.config.loader import load
from mirror_lib.config.local_state import CONFIG_VARIABLE
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.features.demo.airflow import LocalAirflow
from mirror_lib.features.demo.airflow_api import DagRunStatus
from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM
from mirror_lib.features.demo.jars import KAFKA_VERSION
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import dag_id_of
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.sync.heartbeats.flow import emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows
from mirror_lib.sync.topics.flow import apply_flow_topics
from mirror_lib.topology.names import FlowId
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.copiers.settings import TARGET_ALIAS, render
from tools.bench.errors import BenchError
from tools.bench.idle.airflow_waits import patiently
from tools.bench.idle.new_records import Delay, Poll, Polling, delay_table, measure_delays, poll_table, watched
from tools.bench.interrupt import exit_code
from tools.bench.machine.description import describe, java_version
from tools.bench.machine.process_tree import ProcessTree
from tools.testbed.mm2 import MirrorMaker

_WIDTH = 118
_PROJECT = Path(__file__).resolve().parents[3]
_HOUR = 3600.0
#: Runs an hour.
SCHEDULES: Mapping[str, int] = {"every minute": 60, "every 10 minutes": 6}
#: Goals for an idle run of a flow (docs/airflow.md).
GOAL_PROCESSES, GOAL_CPU_SECONDS, GOAL_SECONDS = 2.0, 5.0, 10.0
_EMPTY_DAG = "empty"
_EMPTY_DAG_FILE = """\
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

with DAG("empty", schedule=None):
    PythonOperator(task_id="nothing", python_callable=lambda: None)
"""
_ALL_DUE = {
    "emit.checkpoints.interval.seconds": "0",
    "sync.topic.configs.interval.seconds": "0",
    "sync.topic.acls.interval.seconds": "0",
}
_RUN_SECONDS, _DAG_SECONDS, _WARM_SECONDS = 600.0, 300.0, 30.0
_POLL_SECONDS = 1.0
#: The largest number of flows with heartbeats of all pairs of clusters.
_ALL_PAIRS_EMIT = 10
#: Internal topics of Connect.
_STORED = ("offset", "status", "config")

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured.

    Attributes:
        flows: numbers of flows, each measured with fresh clusters.
        rounds: idle runs of every flow.
        seconds: how long Airflow without runs, and MM2, are observed.
    """

    flows: tuple[int, ...] = (1, 10)
    rounds: int = 3
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Runs:
    """Cost of DAG runs, above an Airflow without any; for one run."""

    processes: float
    cpu_seconds: float
    #: From the trigger to the end, by the REST API.
    seconds: float


@dataclass(frozen=True, slots=True)
class Idle:
    """Measurements with a number of flows."""

    flows: int
    #: CPU seconds a minute.
    airflow_minute: float
    mm2_minute: float
    empty_dag: Runs
    flow: Runs

    def hour(self, runs: int) -> float:
        """Return CPU seconds an hour of all flows with this many runs each, above an Airflow without any."""
        return self.flows * runs * self.flow.cpu_seconds


def settings(flows: int, pair: Pair) -> dict[str, str]:
    """Return the settings of a file for MM2 and this project: checkpoints and all syncs are on, by default.

    Heartbeats are on for all pairs of clusters, by default, as long as these are few: MM2 runs a herder for each pair
    that emits, and 100 flows have 10,100 pairs. With more flows only the flows themselves emit.
    """
    sources = [f"s{number}" for number in range(flows)]
    found = {"clusters": ", ".join([*sources, TARGET_ALIAS])}
    found[f"{TARGET_ALIAS}.bootstrap.servers"] = pair.clear.target_bootstrap
    for number, source in enumerate(sources):
        found[f"{source}.bootstrap.servers"] = pair.clear.source_bootstrap
        found[f"{source}->{TARGET_ALIAS}.enabled"] = "true"
        found[f"{source}->{TARGET_ALIAS}.topics"] = topic_of(number)
        if flows > _ALL_PAIRS_EMIT:
            found[f"{source}->{TARGET_ALIAS}.emit.heartbeats.enabled"] = "true"
    if flows > _ALL_PAIRS_EMIT:
        found["emit.heartbeats.enabled"] = "false"
    factors = ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", *(f"{kind}.storage" for kind in _STORED))
    return found | {f"{name}.replication.factor": "1" for name in factors} | {"replication.factor": "1"}


def topic_of(number: int) -> str:
    """Return the topic of a flow."""
    return f"orders-{number}"


def flow_of(number: int) -> str:
    """Return the DAG of a flow."""
    return dag_id_of(FlowId(f"s{number}", TARGET_ALIAS))


@dataclass
class _Bench:
    options: Options
    pair: Pair
    folder: Path
    show: Show

    def measure(self, flows: int) -> Idle:
        folder = self.folder / str(flows)
        folder.mkdir()
        file = settings(flows, self.pair)
        for number in range(flows):
            self.pair.source.create(topic_of(number), 1)
        mm2_minute = self._mm2(folder / "mm2", file)
        self.pair.forget("s")
        with self._airflow(folder, file | _ALL_DUE) as airflow:
            process = airflow.process
            assert process is not None
            watched = _Watched(airflow, ProcessTree(process.pid))
            dags = [flow_of(number) for number in range(flows)]
            for dag_id in (_EMPTY_DAG, *dags):
                watched.unpause(dag_id)
            # One-time work of Airflow and the clusters is not measured.
            watched.run([_EMPTY_DAG, *dags])
            time.sleep(_WARM_SECONDS)
            self.show(f"{flows} flows: Airflow without runs, {self.options.seconds:g} s")
            share = watched.without_runs(self.options.seconds)
            self.show(f"{flows} flows: {self.options.rounds} runs of an empty DAG, and of each flow")
            empty = watched.measured([_EMPTY_DAG], self.options.rounds, share)
            flow = watched.measured(dags, self.options.rounds, share)
        for number in range(flows):
            self.pair.source.delete([topic_of(number)])
        self.pair.forget("s")
        return Idle(flows, share * 60, mm2_minute, empty, flow)

    def poll(self, flows: int) -> Poll:
        """Measure the poller of flows that have copied a record each."""
        config = self._watched_file(self.folder / f"poll-{flows}", flows)
        _first_copies(config)
        self.show(f"{flows} flows: the poller, {self.options.seconds:g} s")
        with Polling(config) as polling:
            found = polling.cost(flows, self.options.seconds)
        self._forget(flows)
        return found

    def delays(self, flows: int, *, warm: bool) -> tuple[Delay, ...]:
        """Measure how late a record arrives, once for each flow."""
        folder = self.folder / f"delays-{flows}-{'warm' if warm else 'submitted'}"
        self._watched_file(folder, flows)
        dags = {topic_of(number): flow_of(number) for number in range(flows)}
        found = measure_delays(
            folder, self.pair, settings(flows, self.pair), _first_copies, dag_ids=dags, warm=warm, show=self.show
        )
        self._forget(flows)
        return found

    def _watched_file(self, folder: Path, flows: int) -> Path:
        folder.mkdir()
        for number in range(flows):
            self.pair.source.create(topic_of(number), 1)
        config = folder / "mirror.properties"
        file = {**watched(settings(flows, self.pair)), "mirror.ledger.url": f"sqlite:///{folder}/ledger.db"}
        config.write_text(render(file))
        return config

    def _forget(self, flows: int) -> None:
        self.pair.source.delete([topic_of(number) for number in range(flows)])
        self.pair.forget("s")

    def _mm2(self, directory: Path, file: Mapping[str, str]) -> float:
        """Return CPU seconds a minute."""
        with MirrorMaker(directory, jvm_flags=KAFKA_DEFAULT_JVM) as maker:
            maker.start(render({**file, "plugin.discovery": "service_load"}))
            self.show("MM2: starting")
            time.sleep(2 * _WARM_SECONDS)
            used = maker.cpu_seconds
            self.show(f"MM2: {self.options.seconds:g} s")
            time.sleep(self.options.seconds)
            return (maker.cpu_seconds - used) / self.options.seconds * 60

    @contextmanager
    def _airflow(self, folder: Path, file: Mapping[str, str]) -> Iterator[LocalAirflow]:
        dags, config = folder / "dags", folder / "mirror.properties"
        dags.mkdir()
        shutil.copy(_PROJECT / "dags" / "flows.py", dags)
        (dags / "empty.py").write_text(_EMPTY_DAG_FILE)
        config.write_text(render({**file, "mirror.ledger.url": f"sqlite:///{folder}/ledger.db"}))
        _first_copies(config)
        airflow = LocalAirflow(home=folder / "airflow", project=_PROJECT)
        self.show("Airflow: starting")
        try:
            airflow.start(
                {
                    "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
                    "MIRROR_STATE_DIR": str(folder),
                    CONFIG_VARIABLE: str(config),
                },
                lambda _: None,
            )
            yield airflow
        finally:
            airflow.stop()


def _first_copies(config: Path) -> None:
    """Create all topics and copy the first heartbeats, for which a DAG run would start Spark."""
    loaded = load(config)
    with open_ledger(loaded) as ledger:
        for flow in loaded.enabled_flows:
            emit_heartbeats(emitting_flows(loaded, flow.flow), ledger)
            apply_flow_topics(flow, flow_topology(flow), ledger)
            report = replicate(flow, ledger=ledger, make_runner=lambda: _copy, options=RunOptions(trigger="bench"))
            if report.errors:
                raise report.errors[0]


def _copy(job: CopyJob) -> list[PartitionResult]:
    return [result for number in range(len(job.bins)) for result in copy_bin(job, number)]


@dataclass
class _Watched:
    airflow: LocalAirflow
    tree: ProcessTree

    def unpause(self, dag_id: str) -> None:
        patiently(lambda: self.airflow.api.has_dag(dag_id), _DAG_SECONDS, f"the DAG {dag_id}")
        self.airflow.api.unpause(dag_id)

    def without_runs(self, seconds: float) -> float:
        """Return CPU seconds a second, with as many requests as while waiting for runs."""
        began, used = time.monotonic(), self.tree.cpu_seconds()
        while time.monotonic() - began < seconds:
            self.airflow.api.health()
            time.sleep(_POLL_SECONDS)
        return (self.tree.cpu_seconds() - used) / (time.monotonic() - began)

    def run(self, dag_ids: Sequence[str]) -> list[DagRunStatus]:
        """Run some DAGs at the same time, to their end."""
        api = self.airflow.api
        runs = [(dag_id, patiently(partial(api.trigger, dag_id, {}), _RUN_SECONDS, dag_id)) for dag_id in dag_ids]
        for run in runs:
            patiently(partial(api.has_ended, *run), _RUN_SECONDS, f"the end of {run}")
        ended = [patiently(partial(api.run_status, *run), _RUN_SECONDS, f"the tasks of {run}") for run in runs]
        failed = [each for each in ended if each.state != "success"]
        if failed:
            raise BenchError(f"a run has failed: {failed[0]}", action=f"See the logs in {self.airflow.home}/logs.")
        return ended

    def measured(self, dag_ids: Sequence[str], rounds: int, share: float) -> Runs:
        """Return the cost of one of these runs.

        Args:
            share: CPU seconds a second of Airflow without runs.
        """
        count = len(dag_ids) * rounds
        processes = seconds = 0.0
        began, used = time.monotonic(), self.tree.cpu_seconds()
        for _ in range(rounds):
            triggered = time.monotonic()
            # A task that the scheduler has skipped has not been tried.
            processes += sum(sum(ended.tries.values()) for ended in self.run(dag_ids))
            seconds += time.monotonic() - triggered
        # The last processes are counted when their parents have waited for them.
        time.sleep(2 * _POLL_SECONDS)
        cpu = self.tree.cpu_seconds() - used - share * (time.monotonic() - began)
        return Runs(processes / count, cpu / count, seconds / rounds)


def run_table(measured: Sequence[Idle]) -> Table:
    """Return the table of a run."""
    table = Table(title="One run without records, all sync steps due, above an Airflow without runs")
    for column in ("flows", "run of", "processes", "CPU seconds", "seconds until all have ended"):
        table.add_column(column, justify="right")
    for each in measured:
        for name, runs in (("an empty DAG", each.empty_dag), ("a flow", each.flow)):
            table.add_row(
                str(each.flows), name, f"{runs.processes:.1f}", f"{runs.cpu_seconds:.1f}", f"{runs.seconds:.1f}"
            )
    goal = f"{GOAL_PROCESSES:.0f} processes, {GOAL_CPU_SECONDS:g} CPU s above an empty DAG, {GOAL_SECONDS:g} s"
    table.caption = f"Goal for one flow: at most {goal}."
    return table


def hour_table(measured: Sequence[Idle]) -> Table:
    """Return the table of an hour."""
    table = Table(title="CPU seconds an hour of all flows (runs: computed from one)")
    for column in ("flows", "MM2", "Airflow without runs", *(f"runs {name}" for name in SCHEDULES)):
        table.add_column(column, justify="right")
    for each in measured:
        minutes = _HOUR / 60
        figures = (each.mm2_minute * minutes, each.airflow_minute * minutes, *map(each.hour, SCHEDULES.values()))
        table.add_row(str(each.flows), *(f"{figure:,.0f}" for figure in figures))
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code does not depend on the result, since that depends on the machine."""
    parser = argparse.ArgumentParser(prog="bench idle", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flows", default="1,10", help="Numbers of flows, separated by commas (1,10).")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="Idle runs of every flow (3).")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="Seconds to measure Airflow without runs, and MM2 (60)."
    )
    parser.add_argument(
        "--on-new-records", action="store_true", help="Measure the poller instead, and the delay of new records."
    )
    parser.add_argument("--delays", type=int, default=5, metavar="N", help="Records whose delay is measured (5).")
    parser.add_argument("--submit", action="store_true", help="Also measure the delay without a warm Spark.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    chosen = parser.parse_args(argv)
    options = Options(tuple(map(int, chosen.flows.split(","))), chosen.repeat, chosen.seconds)
    progress = Console(stderr=True)
    if chosen.on_new_records:
        return exit_code(lambda: _measure_new_records(options, chosen, progress), progress)
    return exit_code(lambda: _measure(options, chosen.json, progress), progress)


def _measure_new_records(options: Options, chosen: argparse.Namespace, progress: Console) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)

    def show(text: str) -> None:
        progress.print(f"[dim]{text}[/]", highlight=False)

    machine = describe(java=java_version(), kafka=KAFKA_VERSION)
    with (
        tempfile.TemporaryDirectory(prefix="mirror-new-records-", ignore_cleanup_errors=True) as name,
        started_pair(Path(name)) as pair,
    ):
        bench = _Bench(options, pair, Path(name), show)
        polls = [bench.poll(flows) for flows in options.flows]
        kinds = () if not chosen.delays else (True, False) if chosen.submit else (True,)
        delays = {warm: bench.delays(chosen.delays, warm=warm) for warm in kinds}
    console.print(machine.line(), style="dim")
    console.print(poll_table(polls))
    for warm, measured in delays.items():
        console.print(delay_table(measured, warm=warm))
    if chosen.json is not None:
        measured_delays = {"warm" if warm else "submitted": list(map(asdict, each)) for warm, each in delays.items()}
        _save(chosen.json, {"machine": asdict(machine), "polls": list(map(asdict, polls)), "delays": measured_delays})
    return 0


def _save(file: Path, document: Mapping[str, object]) -> None:
    file.write_text(json.dumps(document, indent=2) + "\n")


def _measure(options: Options, file: Path | None, progress: Console) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def show(text: str) -> None:
        progress.print(f"[dim]{time.monotonic() - began:5.0f} s[/]  {text}", highlight=False)

    machine = describe(java=java_version(), kafka=KAFKA_VERSION)
    with (
        tempfile.TemporaryDirectory(prefix="mirror-idle-", ignore_cleanup_errors=True) as name,
        started_pair(Path(name)) as pair,
    ):
        bench = _Bench(options, pair, Path(name), show)
        measured = [bench.measure(flows) for flows in options.flows]
    console.print(machine.line(), style="dim")
    console.print(run_table(measured))
    console.print(hour_table(measured))
    if file is not None:
        rows = list(map(asdict, measured))
        _save(file, {"machine": asdict(machine), "options": asdict(options), "measured": rows})
    return 0
