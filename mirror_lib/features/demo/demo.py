"""The demo on one machine: two clusters, a shop's orders, Airflow, one run of the flow A->B, and a check of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.loader import load_flow
from mirror_lib.config.local_state import CONFIG_VARIABLE, STATE_DIR_VARIABLE, state_dir
from mirror_lib.config.model import ClientSettings, FlowConfig
from mirror_lib.errors import MirrorError
from mirror_lib.features.demo import orders, stack
from mirror_lib.features.demo.airflow import LocalAirflow
from mirror_lib.features.demo.airflow_api import AirflowApi, AirflowApiError, DagRunStatus
from mirror_lib.features.demo.demo_config import demo_properties
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.airflow_runs import dag_id_of, trigger_text
from mirror_lib.past_runs.run_totals import TopicTotal, topic_totals
from mirror_lib.printable import LINES
from mirror_lib.private_files import write_atomically
from mirror_lib.topology.names import FlowId, TopicPartition

FLOW = FlowId("A", "B")
DEFAULT_RECORDS = 300_000
_DAG_SECONDS = 180.0
_RUN_SECONDS = 1200.0
_POLL_SECONDS = 1.0


class DemoError(MirrorError):
    """A step of the demo failed."""

    reason = "demo"
    #: The end of a log.
    layout = LINES


class Step(Protocol):
    """One step's progress, as the command line shows it."""

    def update(self, completed: float, total: float | None = None, description: str | None = None) -> None:
        """Set the completed amount; the total and the text may change."""


#: Opens a step: a text, and its total (None if unknown).
Steps = Callable[[str, float | None], AbstractContextManager[Step]]


@dataclass(frozen=True, slots=True)
class TopicProof:
    """One topic after the run: actual and expected records on the target."""

    total: TopicTotal
    #: Expected records on the target: as many as on the source. If the source's offsets are not a count (aborted
    #: transactions, compaction), as many as the stored positions say.
    expected: int
    #: Records on the target by its offsets.
    on_target: int

    @property
    def proven(self) -> bool:
        """True if nothing is missing and nothing else was written there."""
        return self.expected == self.on_target


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The result of one demo: written, copied and checked records."""

    written: dict[str, int]
    proofs: tuple[TopicProof, ...]
    seconds: float
    airflow_url: str
    run_page: str
    config: Path

    @property
    def records(self) -> int:
        """Records copied by this demo's run."""
        return sum(proof.total.records for proof in self.proofs)

    @property
    def proven(self) -> bool:
        """True if every topic's counts agree."""
        return all(proof.proven for proof in self.proofs)


def run_demo(records: int, steps: Steps) -> DemoOutcome:
    """Start everything, write new input, run the flow's DAG once and check the target.

    Running components are used as they are; a second demo adds input and copies only that.

    Args:
        records: number of records to write, over all topics.
        steps: shows progress.

    Raises:
        MirrorError: a step failed; the message says which log to read.
    """
    with steps("Kafka clusters A and B", None):
        source, target = stack.up()
    config = _write_config(source.bootstrap_servers, target.bootstrap_servers)
    settings, flow = load_flow(config, str(FLOW))
    ledger = open_ledger(settings)
    written = _write_input(source.bootstrap_servers, records, steps)
    airflow = LocalAirflow.of_project()
    with steps("Airflow", None) as step:
        airflow.start(_airflow_environment(config), lambda text: step.update(0, description=text))
        _wait_for_dag(airflow.api, dag_id_of(FLOW), airflow.log)
    began = time.monotonic()
    dag_run = _run_dag(airflow, ledger, steps)
    seconds = time.monotonic() - began
    with steps("Checking the target", None):
        proofs = _prove(flow, ledger, dag_run)
    return DemoOutcome(
        written=written,
        proofs=proofs,
        seconds=seconds,
        airflow_url=airflow.url,
        run_page=airflow.api.run_page(dag_id_of(FLOW), dag_run),
        config=config,
    )


def stop_demo() -> list[str]:
    """End Airflow and the clusters with all their processes; return what was running."""
    ended = ["Airflow"] if LocalAirflow.of_project().stop() else []
    return [*ended, *(f"cluster {name}" for name in stack.down())]


def _write_config(source: str, target: str) -> Path:
    # A separate file: mirror.properties may contain the user's own changes.
    path = state_dir() / "demo.properties"
    text = demo_properties(
        (FLOW.source, source),
        (FLOW.target, target),
        topics=[topic.name for topic in orders.TOPICS],
        tasks=min(os.cpu_count() or 1, 4),
    )
    write_atomically(path, text)
    return path


def _write_input(bootstrap: str, records: int, steps: Steps) -> dict[str, int]:
    with steps("Orders of the shop", records) as step:
        orders.create_topics(bootstrap)
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            step.update(done)

        written = orders.write_orders(bootstrap, records, advance)
        orders.commit_group(bootstrap)
    return written


def _airflow_environment(config: Path) -> dict[str, str]:
    return {CONFIG_VARIABLE: str(config), STATE_DIR_VARIABLE: str(state_dir())}


def _wait_for_dag(api: AirflowApi, dag_id: str, log: Path) -> None:
    deadline = time.monotonic() + _DAG_SECONDS
    while not api.has_dag(dag_id):
        problems = api.import_errors()
        if problems:
            shown = "\n".join(f"{file}:\n{text}" for file, text in problems.items())
            raise DemoError(f"Airflow cannot read the flow's DAG.\n{shown}", action=f"Its log is {log}.")
        if time.monotonic() > deadline:
            raise DemoError(f"Airflow has not found the DAG {dag_id} in {_DAG_SECONDS:.0f} s.", action=f"See {log}.")
        time.sleep(_POLL_SECONDS)


def _run_dag(airflow: LocalAirflow, ledger: Ledger, steps: Steps) -> str:
    """Trigger the flow and follow it to its end; return the DAG run's id."""
    api, dag_id = airflow.api, dag_id_of(FLOW)
    api.unpause(dag_id)
    dag_run = api.trigger(dag_id, {})
    deadline = time.monotonic() + _RUN_SECONDS
    with steps(f"Flow {FLOW}", None) as step:
        while True:
            status = _status(airflow, dag_run)
            if status is not None:
                _show(step, status, ledger)
                if status.is_finished:
                    break
            if time.monotonic() > deadline:
                raise DemoError(
                    f"The run {dag_run} has not ended in {_RUN_SECONDS:.0f} s.",
                    action=f"See {api.run_page(dag_id, dag_run)} and {airflow.log}.",
                )
            time.sleep(_POLL_SECONDS)
    if status.state != "success":
        failed = ", ".join(status.failed_tasks) or "none of its tasks"
        raise DemoError(
            f"The run {dag_run} ended as {status.state}; failed: {failed}.",
            action=f"See {api.run_page(dag_id, dag_run)}, or the task logs under {airflow.home / 'logs'}.",
        )
    return dag_run


def _status(airflow: LocalAirflow, dag_run: str) -> DagRunStatus | None:
    """Return None while a busy Airflow does not respond; an Airflow that ended is an error."""
    try:
        return airflow.api.run_status(dag_id_of(FLOW), dag_run)
    except AirflowApiError:
        if airflow.process is None:
            raise
        return None


def _show(step: Step, status: DagRunStatus, ledger: Ledger) -> None:
    running = [task for task, state in status.tasks.items() if state not in (None, "success", "skipped")]
    text = f"Flow {FLOW}: {running[0] if running else 'waiting for Airflow'}"
    runs = ledger.runs(str(FLOW), trigger=trigger_text(dag_id_of(FLOW), status.run_id))
    rows = [row for run in runs for row in ledger.partition_runs(run.id)]
    if rows:
        step.update(
            sum(row.records for row in rows),
            total=sum(row.end_offset - row.start_offset for row in rows),
            description=text,
        )
    else:
        step.update(0, description=text)


def _prove(flow: FlowConfig, ledger: Ledger, dag_run: str) -> tuple[TopicProof, ...]:
    """Compare the clusters' own offsets, topic by topic."""
    runs = ledger.runs(str(FLOW), trigger=trigger_text(dag_id_of(FLOW), dag_run))
    partitions = {topic.name: range(topic.partitions) for topic in orders.TOPICS}
    rows = (row for run in reversed(runs) for row in ledger.partition_runs(run.id))
    # Heartbeats were copied too; the task `heartbeats` shows them.
    totals = topic_totals(row for row in rows if row.topic in partitions)
    expected = _positions(ledger)
    sources = _sizes(flow.clients.source_admin, {t.topic: partitions[t.topic] for t in totals})
    targets = _sizes(flow.clients.target_admin, {t.target_topic: partitions[t.topic] for t in totals})
    dense = {topic.name for topic in orders.TOPICS if topic.dense}
    return tuple(
        TopicProof(
            total=total,
            expected=sources[total.topic] if total.topic in dense else expected[total.topic],
            on_target=targets[total.target_topic],
        )
        for total in totals
    )


def _positions(ledger: Ledger) -> dict[str, int]:
    """Return source topic -> records that all runs have written to the target, by the stored positions."""
    expected: dict[str, int] = {}
    for position in ledger.positions(str(FLOW)):
        expected[position.topic] = expected.get(position.topic, 0) + (position.target_offset or 0)
    return expected


def _sizes(settings: ClientSettings, topics: Mapping[str, Iterable[int]]) -> dict[str, int]:
    """Return topic -> offsets between its logs' starts and ends."""
    places = [TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers]
    with ClusterAdmin(Connection.from_settings(settings)) as admin:
        starts = admin.list_offsets(places, OffsetSpec.EARLIEST)
        ends = admin.list_offsets(places, OffsetSpec.LATEST)
    sizes = dict.fromkeys(topics, 0)
    for place in places:
        error = starts[place].error or ends[place].error
        if error is not None:
            raise error
        sizes[place.topic] += ends[place].offset - starts[place].offset
    return sizes
