"""A bad day in a real Airflow: drivers killed, runs marked, deleted and cleared, a file broken, the scheduler gone.

Everything in one go. Two configuration files share Airflow, clusters and ledger.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from mirror_lib.airflow.files.broken_dags import BROKEN_TAG
from mirror_lib.dev.airflow_api import AirflowApi, AirflowApiError, DagRunStatus
from mirror_lib.ledger.rows import RunRow, RunState
from mirror_lib.ledger.store import Ledger
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, consume, create_topic, produce, records, watermarks
from tests.support.shared_airflow import SharedAirflow

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files

pytestmark = pytest.mark.timeout(1200)

DAG, OTHER = "mirror__N__S", "mirror__C__D"
FLOW = "N->S"
PARTITIONS, RECORDS, SIZE = 2, 1250, 1000
#: Read so slowly, a copy can be met in its middle: the whole topic takes 25 s, a piece is there at once.
SLOWLY = {"bytes_per_second": 100_000, "steps": ["sync_topics"]}
#: More than a take-over's markers, which have offsets, too.
_SOME = 50
#: What no form takes, by the DAG that gets it.
NONSENSE: Mapping[str, dict[str, Any]] = {
    DAG: {"max_seconds": 1e300},
    "mirror_verify__N__S": {"max_bytes": "many"},
    "mirror_backfill__N__S": {"target_name": "../x"},
    "mirror_cutover__N__S": {"wait_hours": -1},
}


@dataclass(frozen=True, slots=True)
class Site:
    """Airflow with its files, and what is done to both."""

    airflow: SharedAirflow
    pair: KafkaPair
    ledger: Ledger
    topic: str
    file: Path
    other_file: Path

    @property
    def api(self) -> AirflowApi:
        """Of Airflow."""
        return self.airflow.api

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait for an event."""
        self.airflow.wait(done, what)

    def copied(self) -> int:
        """Records of the topic on the target."""
        if not self.ledger.runs(FLOW):
            return 0
        return sum(watermarks(self.pair.target, f"N.{self.topic}", number)[1] for number in range(PARTITIONS))

    def copying_run(self, run_id: str | None = None) -> str:
        """A DAG run of the flow, a new one unless one is named, that has just copied something."""
        before = self.copied()
        run_id = run_id or self.api.trigger(DAG, SLOWLY)
        self.wait(lambda: self.api.run_status(DAG, run_id).tasks.get("replicate") == "running", f"the copy of {run_id}")
        self.wait(lambda: self.copied() > before + _SOME, f"records of {run_id}")
        return run_id

    def newest(self) -> RunRow:
        """The flow's newest run in the ledger."""
        return self.ledger.runs(FLOW, 1)[0]

    def kill_driver(self) -> None:
        """As the kernel does when memory is short: Spark's driver with everything it has started."""
        drivers = [
            each
            for each in psutil.process_iter(["cmdline"])
            # Other Airflows on this machine have flows of this name, too.
            if f"--config={self.file}" in (each.info["cmdline"] or ())
            and any("replicate.py" in word for word in each.info["cmdline"])
        ]
        assert drivers
        for process in drivers:
            for each in (process, *process.children(recursive=True)):
                if each.is_running():
                    each.send_signal(signal.SIGKILL)

    def page(self, path: str) -> dict[str, Any]:
        """What the page's API answers."""
        address = f"{self.airflow.running.url}/replication/api/{path}"
        return dict(httpx.get(address, timeout=60, trust_env=False).json())

    def flow_on_page(self) -> dict[str, Any]:
        """What the page says of the flow."""
        (found,) = [each for each in self.page("overview")["flows"] if each["name"] == FLOW]
        return dict(found)


@pytest.fixture(scope="module")
def site(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Iterator[Site]:
    create_topic(kafka_pair.source, files.topic, partitions=PARTITIONS)
    for number in range(PARTITIONS):
        produce(kafka_pair.source, files.topic, records(RECORDS, size=SIZE, partition=number))
    with Ledger.open(files.ledger_url) as ledger:
        ledger.migrate()
        for dag_id in (DAG, OTHER, *NONSENSE):
            airflow.wait(partial(airflow.api.has_dag, dag_id), f"the DAG {dag_id}")
        for dag_id in (DAG, OTHER):
            airflow.api.unpause(dag_id)
        yield Site(airflow, kafka_pair, ledger, files.topic, files.one, files.other)


@dataclass(frozen=True, slots=True)
class Day:
    """What was seen, in this order."""

    #: DAG -> HTTP status and text of the refusal.
    nonsense: Mapping[str, str]
    died: str
    page_after_death: Mapping[str, Any]
    import_errors: Mapping[str, str]
    broken: DagRunStatus
    killed: DagRunStatus
    marked_failed: RunRow
    marked_success: RunRow
    deleted: RunRow
    last: DagRunStatus
    runs: tuple[RunRow, ...]
    #: Run -> who ended it, by the page.
    ended_by: Mapping[str, str | None]
    source: list[Record]
    target: list[Record]


def _told(call: Callable[[], object]) -> str:
    with pytest.raises(AirflowApiError) as refused:
        call()
    return str(refused.value)


@pytest.fixture(scope="module")
def day(site: Site) -> Day:
    api = site.api
    nonsense = {dag_id: _told(lambda: api.trigger(dag_id, conf)) for dag_id, conf in NONSENSE.items()}  # noqa: B023

    # The driver is killed in the middle of a copy; Airflow tries again after 30 s.
    killed = site.copying_run()
    died = site.newest().id
    site.kill_driver()
    site.wait(lambda: died in site.ledger.dead_runs(site.ledger.runs(FLOW)), "the run's death")
    page_after_death = site.flow_on_page()

    # Meanwhile somebody breaks the other file, and mends it.
    good = site.other_file.read_text()
    site.other_file.write_text(good + "C->D.topcis = nonsense\n")
    site.airflow.parse_now()
    site.wait(lambda: bool(api.import_errors()), "the import error")
    import_errors = api.import_errors()
    broken = site.airflow.running.run(OTHER)

    # The second attempt copies, when the DAG is paused and the scheduler dies. A run goes on where a new one finds it.
    site.copying_run(killed)
    api.pause(DAG)
    site.airflow.running.parts.replace("scheduler")
    site.other_file.write_text(good)
    site.airflow.parse_now()
    site.wait(lambda: not api.import_errors() and BROKEN_TAG not in api.tags(OTHER), "the end of the import error")
    api.unpause(DAG)
    site.wait(lambda: api.has_ended(DAG, killed), f"the end of {killed}")

    # Somebody marks a run as failed, clears it, marks it as successful, deletes another one; each in mid-copy.
    for number in range(PARTITIONS):
        produce(site.pair.source, site.topic, records(RECORDS, size=SIZE, partition=number, start=RECORDS))
    run_id = site.copying_run()
    marked_failed = _ended(site, lambda: api.mark_run(DAG, run_id, "failed"))
    api.clear_run(DAG, run_id)
    site.copying_run(run_id)
    marked_success = _ended(site, lambda: api.mark_run(DAG, run_id, "success"))
    other_id = site.copying_run()
    deleted = _ended(site, lambda: _delete(api, other_id))

    last = site.airflow.running.run(DAG)
    return Day(
        nonsense,
        died,
        page_after_death,
        import_errors,
        broken,
        api.run_status(DAG, killed),
        marked_failed,
        marked_success,
        deleted,
        last,
        site.ledger.runs(FLOW),
        {run["id"]: run["ended_by"] for run in site.page(f"flows/{DAG}/runs")["runs"]},
        consume(site.pair.source, site.topic),
        consume(site.pair.target, f"N.{site.topic}"),
    )


def _delete(api: AirflowApi, run_id: str) -> None:
    """Airflow 3.3 deletes no running run, but one whose tasks have just been told to end."""
    api.mark_run(DAG, run_id, "failed")
    api.delete_run(DAG, run_id)


def _ended(site: Site, act: Callable[[], object]) -> RunRow:
    """The run that an act has ended, once it is over."""
    run_id = site.newest().id
    act()

    def over() -> bool:
        row = site.ledger.run(run_id)
        assert row is not None
        return row.state != RunState.RUNNING or run_id in site.ledger.dead_runs([row])

    site.wait(over, f"the end of the run {run_id}")
    found = site.ledger.run(run_id)
    assert found is not None
    return found


def _values(found: list[Record]) -> dict[int, list[bytes | None]]:
    """Partition -> values in their order."""
    return {number: [each.value for each in found if each.partition == number] for number in range(PARTITIONS)}


def test_no_record_is_lost_or_repeated_and_each_is_in_its_place(day: Day) -> None:
    assert len(day.source) == PARTITIONS * RECORDS * 2
    assert _values(day.target) == _values(day.source)


def test_nonsense_is_refused_when_a_run_is_triggered(day: Day) -> None:
    for dag_id, conf in NONSENSE.items():
        (field,) = conf
        assert "with 400" in day.nonsense[dag_id]
        assert field in day.nonsense[dag_id]


def test_a_driver_that_was_killed_shows_on_the_page_and_is_tried_again(day: Day) -> None:
    assert "run died" in json.dumps(day.page_after_death)
    assert day.killed.state == "success", day.killed
    assert day.killed.tries["replicate"] > 1


def test_a_broken_file_is_shown_and_stops_its_own_flow_alone(day: Day) -> None:
    (told,) = day.import_errors.values()
    assert "did you mean C->D.topics?" in told
    assert "one.properties" not in told
    assert day.broken.state == "failed"
    assert (day.broken.tasks["preflight"], day.broken.tries["preflight"]) == ("failed", 1)
    assert day.broken.tasks["replicate"] == "upstream_failed"


def test_runs_that_people_end_say_so_and_none_stays_open_in_the_ledger(day: Day) -> None:
    assert day.last.state == "success", day.last
    assert {row.state for row in day.runs} <= {state.value for state in RunState} - {RunState.RUNNING}
    for row in (day.marked_failed, day.marked_success, day.deleted):
        (closed,) = [each for each in day.runs if each.id == row.id]
        assert closed.finished_at is not None
        # One that was told to end, and did in good order, needs no error.
        assert closed.error is not None or closed.state != RunState.FAILED
        assert closed.error is None or closed.error["reason"] in ("spark-job", "run-died")
        # One that ended by itself just before was ended by nobody.
        assert closed.state == RunState.SUCCEEDED or str(day.ended_by[row.id]).endswith("in Airflow."), closed
    (dead,) = [each for each in day.runs if each.id == day.died]
    assert dead.error is not None
    assert dead.error["reason"] == "run-died"
