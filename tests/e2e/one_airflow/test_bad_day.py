"""A bad day in a real Airflow: drivers killed, runs marked, deleted and cleared, a file broken, the scheduler gone.

Everything in one go. Two configuration files share Airflow, clusters and ledger; one of them has two flows.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from mirror_lib.airflow.files.broken_dags import BROKEN_TAG
from mirror_lib.features.demo.airflow_api import AirflowApi, AirflowApiError, DagRunStatus
from mirror_lib.ledger.rows import RunRow, RunState
from mirror_lib.ledger.store import Ledger
from tests.support.airflow.shared import SharedAirflow
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, consume, create_topic, produce, records, watermarks

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files

pytestmark = pytest.mark.timeout(1200)

DAG, MARKED, OTHER = "mirror__N__S", "mirror__M__S", "mirror__C__D"
FLOW, MARKED_FLOW = "N->S", "M->S"
PARTITIONS, SIZE = 2, 1000
#: Of each partition, by flow: of the second one every mark takes a part.
RECORDS = {FLOW: 1250, MARKED_FLOW: 2000}
#: Read so slowly, a copy can be met in its middle: the whole topic takes 25 s or more, a piece is there at once.
SLOWLY: Mapping[str, Any] = {"bytes_per_second": 100_000, "steps": ["sync_topics"]}
#: Airflow ends a task up to 10 s after its mark, and three marks fall into one topic.
MORE_SLOWLY = {**SLOWLY, "bytes_per_second": 50_000}
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
    file: Path
    other_file: Path
    flow: str
    topic: str
    conf: Mapping[str, Any]

    @property
    def api(self) -> AirflowApi:
        """Of Airflow."""
        return self.airflow.api

    @property
    def dag_id(self) -> str:
        """Of the flow."""
        return "mirror__" + self.flow.replace("->", "__")

    @property
    def target_topic(self) -> str:
        """Of the flow's topic."""
        return f"{self.flow.partition('->')[0]}.{self.topic}"

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait for an event."""
        self.airflow.wait(done, what)

    def copied(self) -> int:
        """Records of the topic on the target."""
        if not self.ledger.runs(self.flow):
            return 0
        return sum(watermarks(self.pair.target, self.target_topic, number)[1] for number in range(PARTITIONS))

    def copying_run(self, run_id: str | None = None) -> str:
        """A DAG run of the flow, a new one unless one is named, that has just copied something."""
        before = self.copied()
        run_id = run_id or self.api.trigger(self.dag_id, self.conf)
        status = partial(self.api.run_status, self.dag_id, run_id)
        self.wait(lambda: status().tasks.get("replicate") == "running", f"the copy of {run_id}")
        self.wait(lambda: self.copied() > before + _SOME, f"records of {run_id}")
        return run_id

    def newest(self) -> RunRow:
        """The flow's newest run in the ledger."""
        return self.ledger.runs(self.flow, 1)[0]

    def drivers(self) -> list[psutil.Process]:
        """The processes of the flow's Spark driver."""
        return [
            each
            for each in psutil.process_iter(["cmdline"])
            # Other Airflows on this machine have flows of this name, too.
            if {f"--config={self.file}", f"--flow={self.flow}"} <= {*(each.info["cmdline"] or ())}
            and any("replicate.py" in word for word in each.info["cmdline"])
        ]

    def kill_driver(self) -> None:
        """As the kernel does when memory is short: Spark's driver with everything it has started."""
        drivers = self.drivers()
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
        (found,) = [each for each in self.page("overview")["flows"] if each["name"] == self.flow]
        return dict(found)


@pytest.fixture(scope="module")
def site(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Iterator[Site]:
    for topic, count in zip((files.topic, files.marked_topic), RECORDS.values(), strict=True):
        create_topic(kafka_pair.source, topic, partitions=PARTITIONS)
        for number in range(PARTITIONS):
            produce(kafka_pair.source, topic, records(count, size=SIZE, partition=number))
    with Ledger.open(files.ledger_url) as ledger:
        ledger.migrate()
        for dag_id in (DAG, MARKED, OTHER, *NONSENSE):
            airflow.wait(partial(airflow.api.has_dag, dag_id), f"the DAG {dag_id}")
        for dag_id in (DAG, MARKED, OTHER):
            airflow.api.unpause(dag_id)
        yield Site(airflow, kafka_pair, ledger, files.one, files.other, FLOW, files.topic, SLOWLY)


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
    #: Ids in the ledger.
    marked_failed: str
    marked_success: str
    deleted: str
    last: DagRunStatus
    #: Of both flows.
    runs: tuple[RunRow, ...]
    #: Run -> who ended it, by the page.
    ended_by: Mapping[str, str | None]
    #: Source and target, by flow.
    logs: Mapping[str, tuple[list[Record], list[Record]]]


def _told(call: Callable[[], object]) -> str:
    with pytest.raises(AirflowApiError) as refused:
        call()
    return str(refused.value)


@pytest.fixture(scope="module")
def day(site: Site, files: Files) -> Day:
    api = site.api
    nonsense = {dag_id: _told(lambda: api.trigger(dag_id, conf)) for dag_id, conf in NONSENSE.items()}  # noqa: B023

    marked = replace(site, flow=MARKED_FLOW, topic=files.marked_topic, conf=MORE_SLOWLY)
    # The driver is killed in the middle of a copy; Airflow tries again after 30 s.
    killed = site.copying_run()
    died = site.newest().id
    site.kill_driver()
    site.wait(lambda: died in site.ledger.dead_runs(site.ledger.runs(FLOW)), "the run's death")
    page_after_death = site.flow_on_page()

    # Meanwhile somebody breaks the other file, and mends it.
    good = site.other_file.read_text()
    site.other_file.write_text(good + "C->D.tasks.max = many\n")
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

    # Meanwhile somebody marks a run as failed, clears it, marks it as successful, deletes another; each in mid-copy.
    run_id = marked.copying_run()
    marked_failed = _ended(marked, lambda: api.mark_run(MARKED, run_id, "failed"))
    api.clear_run(MARKED, run_id)
    marked.copying_run(run_id)
    marked_success = _ended(marked, lambda: api.mark_run(MARKED, run_id, "success"))
    other_id = marked.copying_run()
    deleted = _ended(marked, lambda: _delete(api, other_id))

    last = site.airflow.running.run(MARKED)
    site.wait(lambda: api.has_ended(DAG, killed), f"the end of {killed}")
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
        (*site.ledger.runs(FLOW), *site.ledger.runs(MARKED_FLOW)),
        {run["id"]: run["ended_by"] for run in site.page(f"flows/{MARKED}/runs")["runs"]},
        {
            each.flow: (consume(each.pair.source, each.topic), consume(each.pair.target, each.target_topic))
            for each in (site, marked)
        },
    )


def _delete(api: AirflowApi, run_id: str) -> None:
    """Airflow 3.3 deletes no running run, but one whose tasks have just been told to end."""
    api.mark_run(MARKED, run_id, "failed")
    api.delete_run(MARKED, run_id)


def _ended(site: Site, act: Callable[[], object]) -> str:
    """The run that an act has ended, once its driver is gone."""
    run_id = site.newest().id
    act()
    site.wait(lambda: not site.drivers(), f"the end of the run {run_id}")
    return run_id


def _values(found: list[Record]) -> dict[int, list[bytes | None]]:
    """Partition -> values in their order."""
    return {number: [each.value for each in found if each.partition == number] for number in range(PARTITIONS)}


def test_no_record_is_lost_or_repeated_and_each_is_in_its_place(day: Day) -> None:
    for flow, (source, target) in day.logs.items():
        assert len(source) == PARTITIONS * RECORDS[flow]
        assert _values(target) == _values(source)


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
    assert "C->D.tasks.max must be a whole number" in told
    assert "one.properties" not in told
    assert day.broken.state == "failed"
    assert (day.broken.tasks["preflight"], day.broken.tries["preflight"]) == ("failed", 1)
    assert day.broken.tasks["replicate"] == "upstream_failed"


def test_runs_that_people_end_say_so_and_none_stays_open_in_the_ledger(day: Day) -> None:
    assert day.last.state == "success", day.last
    assert {row.state for row in day.runs} <= {state.value for state in RunState} - {RunState.RUNNING}
    for run_id in (day.marked_failed, day.marked_success, day.deleted):
        (closed,) = [each for each in day.runs if each.id == run_id]
        assert closed.finished_at is not None
        # One that was told to end, and did in good order, needs no error.
        assert closed.error is not None or closed.state != RunState.FAILED
        assert closed.error is None or closed.error["reason"] in ("spark-job", "run-died")
        # One that ended by itself just before was ended by nobody.
        assert closed.state == RunState.SUCCEEDED or str(day.ended_by[run_id]).endswith("in Airflow."), closed
    (dead,) = [each for each in day.runs if each.id == day.died]
    assert dead.error is not None
    assert dead.error["reason"] == "run-died"
