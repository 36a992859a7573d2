"""The Spark job without Spark: its exit code, its report, and the ids of its runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import OffsetOutOfRangeError
from mirror_lib.ledger.store import Ledger
from mirror_lib.relay.gaps.resolutions import Decision
from mirror_lib.relay.job import command as job
from mirror_lib.relay.job.report import JobReport
from mirror_lib.relay.model import CopyJob, PartitionProblem, PartitionResult, RunPlan
from mirror_lib.relay.run_options import CopyRunner, RunOptions, RunReport
from mirror_lib.topology.names import FlowId, TopicPartition

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
mirror.ledger.url = sqlite:///ledger.sqlite3
"""
_LOST = PartitionProblem(TopicPartition("t", 0), OffsetOutOfRangeError("records are lost.", action="Decide."))


class Job:
    """Calls the job's main function; what it would do to clusters is only noted."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "mirror.properties"
        self.file.write_text(_FILE)
        self.path = folder / "report.json"
        self.ledger_url = f"sqlite:///{folder / 'ledger.sqlite3'}"
        self.asked: list[RunOptions] = []
        self.problems: tuple[PartitionProblem, ...] = ()

    def replicate(self, flow: FlowConfig, *, ledger: Ledger, make_runner: Any, options: RunOptions) -> RunReport:
        """As the real one begins and ends: with the ledger."""
        del make_runner
        self.asked.append(options)
        ledger.start_run(run_id=options.run_id, flow=str(flow.flow), trigger=options.trigger)
        return RunReport(options.run_id, str(flow.flow), 1, 0, 0.5, 0.0, results=(), problems=self.problems)

    def plan(self, flow: FlowConfig, options: RunOptions, ledger: Ledger | None) -> RunPlan:
        assert ledger is None, "a dry run makes no ledger"
        self.asked.append(options)
        return RunPlan(FlowId.parse(str(flow.flow)), bins=(), problems=self.problems, idle=3)

    def main(self, *options: str, flow: str = "A->B") -> int:
        return job.main([f"--config={self.file}", f"--flow={flow}", *options], _no_spark)

    def reported(self, *options: str, flow: str = "A->B") -> tuple[int, JobReport]:
        code = self.main(f"--report={self.path}", *options, flow=flow)
        report = JobReport.read(self.path)
        assert report is not None
        return code, report


def _no_spark(flow: str) -> CopyRunner:
    def run(job: CopyJob) -> list[PartitionResult]:
        raise AssertionError(f"{flow} has nothing to copy: {job}")

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    made = Job(tmp_path)
    monkeypatch.setattr(job, "replicate", made.replicate)
    monkeypatch.setattr(job, "plan_flow", made.plan)
    return made


def test_the_arguments_become_the_runs_options(here: Job) -> None:
    code, report = here.reported("--run-id=r1", "--trigger=me", "--topics=a", "--topics=b", "--tasks=2")

    assert (code, report.exit_code, report.run_id) == (0, 0, "r1")
    assert here.asked == [RunOptions(run_id="r1", trigger="me", topics=("a", "b"), tasks_max=2, max_seconds=None)]


def test_what_to_do_about_lost_records_is_for_the_run(here: Job) -> None:
    for choice in ("ask", "accept", "recopy"):
        here.main(f"--gaps={choice}")

    assert [options.losses for options in here.asked] == [None, Decision.ACCEPT, Decision.RECOPY]


def test_a_partition_that_needs_a_person_decides_the_exit_code(here: Job) -> None:
    here.problems = (_LOST,)

    code, report = here.reported()

    assert (code, report.exit_code) == (3, 3)
    assert [failure.reason for failure in report.failures] == ["offset-out-of-range"]


def test_given_no_run_id_when_started_again_then_it_is_another_run(here: Job) -> None:
    """So does Airflow, whose tasks are retried: every attempt has its own row in the ledger."""
    first, second = here.reported("--trigger=airflow d r"), here.reported("--trigger=airflow d r")

    assert (first[0], second[0]) == (0, 0)
    assert first[1].run_id != second[1].run_id
    with Ledger.open(here.ledger_url) as ledger:
        ids = {run.id for run in ledger.runs("A->B", 10, trigger="airflow d r")}
    assert ids == {first[1].run_id, second[1].run_id}


def test_given_a_run_id_when_submitted_again_then_the_ledger_refuses_the_second(here: Job) -> None:
    """The rows of the first run stay what they were; a restarted driver must not write over them."""
    assert here.main("--run-id=r1") == 0

    code, report = here.reported("--run-id=r1")

    assert code == 1
    assert report.error is not None
    assert report.error.reason == "ledger"
    assert "r1 already exists" in report.error.what


def test_a_dry_run_reports_its_plan_and_leaves_the_ledger_alone(here: Job, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = here.reported("--dry-run")

    assert (code, report.dry_run, report.idle) == (0, True, 3)
    assert capsys.readouterr().out == ""
    assert not Path(here.ledger_url.removeprefix("sqlite:///")).exists()


def test_a_dry_run_without_a_report_file_prints_its_plan(here: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.main("--dry-run") == 0

    assert json.loads(capsys.readouterr().out)["idle_partitions"] == 3


def test_a_flow_that_the_file_does_not_have_is_a_reported_configuration_error(here: Job) -> None:
    code, report = here.reported(flow="B->C")

    assert (code, report.exit_code) == (2, 2)
    assert report.error is not None
    assert "no flow 'B->C'" in report.error.what
    assert here.asked == []
