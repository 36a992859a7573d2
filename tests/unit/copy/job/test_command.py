"""The Spark job without Spark: its exit code, its report, and the ids of its runs.

The job's command line.

The report file: written as the job writes it, read as those read it who started the job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.file.problems import InvalidConfigurationError
from mirror_lib.config.model import FlowConfig, Problem, Severity
from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.copy.job import command as job
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.copy.job.report import (
    Failure,
    JobReport,
    PlannedTopic,
    SkippedRange,
    error_report,
    plan_report,
    write_report,
)
from mirror_lib.copy.run_options import CopyRunner, RunOptions, RunReport
from mirror_lib.errors import FencedError, MirrorError, OffsetOutOfRangeError, TopicMissingError, Where
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import WHOLE_TOPIC, CopyJob, PartitionProblem, PartitionResult, Poison, RunPlan
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_plan, partition_result

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


def test_a_person_needs_to_name_only_file_and_flow() -> None:
    arguments = JobArguments.parse(["--config", "f.properties", "--flow", "A->B"])

    assert arguments == JobArguments(config=Path("f.properties"), flow="A->B", trigger="spark-submit")
    assert arguments.run_id == "", "the job makes one"


def test_a_choice_about_gaps_that_a_job_does_not_know_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        JobArguments.parse(["--config=f", "--flow=A->B", "--gaps=stop"])

    assert caught.value.code == 2
    assert "usage: replicate.py" in capsys.readouterr().err


_FLOW = FlowId("A", "B")
_DONE = partition_result(partition_plan(end=10), seconds=0.25)
_AT_TARGET = Where(flow="A->B", cluster="B", topic="A.orders", partition=1, offset=7)
_FENCED = FencedError("another run has taken over.", where=_AT_TARGET, action="Wait for it.")
_FAILED = replace(_DONE, source=TopicPartition("orders", 1), records=3, bytes=300, source_next=3, error=_FENCED)
_MISSING = TopicMissingError("it is not there.", where=Where(flow="A->B", topic="lost"), action="Create it.")
_LOST_TOPIC = PartitionProblem(TopicPartition("lost", WHOLE_TOPIC), _MISSING)


def _report(*results: PartitionResult, problems: tuple[PartitionProblem, ...] = ()) -> RunReport:
    return RunReport(
        run_id="r1",
        flow="A->B",
        rounds=2,
        idle=4,
        seconds=3.5,
        copy_seconds=1.25,
        results=results,
        problems=problems,
    )


def _read_back(folder: Path, content: Mapping[str, Any]) -> JobReport:
    path = folder / "new" / "report.json"
    write_report(path, content)
    return JobReport.read(path)


def test_a_job_that_ended_before_or_while_writing_has_no_report(tmp_path: Path) -> None:
    """It was killed, or the disk was full: the starter then tells how the job ended."""
    path = tmp_path / "report.json"
    assert JobReport.read(path) is None
    for content in ("", '{"exit_code": 0, "par'):
        path.write_text(content)

        assert JobReport.read(path) is None, content


def test_a_run_comes_back_with_its_figures(tmp_path: Path) -> None:
    assert _read_back(tmp_path, _report(_DONE).to_dict()) == JobReport(
        exit_code=0,
        run_id="r1",
        records=10,
        bytes=1_000,
        rounds=2,
        idle=4,
        seconds=3.5,
        copy_seconds=1.25,
    )


def test_failed_and_refused_partitions_are_both_failures_at_their_source(tmp_path: Path) -> None:
    report = _read_back(tmp_path, _report(_DONE, _FAILED, problems=(_LOST_TOPIC,)).to_dict())

    assert (report.exit_code, report.records) == (1, 13)
    assert report.failures == (
        Failure("fenced", "another run has taken over.", "Wait for it.", replace(_AT_TARGET, topic="orders")),
        Failure("topic-missing", "it is not there.", "Create it.", Where(flow="A->B", topic="lost")),
    )


def test_a_dry_runs_plan_is_added_up_per_topic(tmp_path: Path) -> None:
    first = partition_plan("t", 0, start=5, end=15, estimated_bytes=100)
    second = partition_plan("t", 1, start=0, end=1, estimated_bytes=3)
    plan = RunPlan(_FLOW, bins=((first,), (second,)), problems=(_LOST_TOPIC,), idle=6)

    report = _read_back(tmp_path, plan_report(plan))

    assert report.dry_run
    assert (report.exit_code, report.run_id, report.idle) == (0, None, 6)
    assert report.planned == (PlannedTopic("t", "A.t", partitions=2, offsets=11, estimated_bytes=103),)
    assert [failure.where.partition for failure in report.failures] == [None]


def test_a_job_that_failed_as_a_whole_comes_back_with_its_error(tmp_path: Path) -> None:
    report = _read_back(tmp_path, error_report(_FENCED))

    assert (report.exit_code, report.failures) == (1, ())
    assert report.error == Failure("fenced", "another run has taken over.", "Wait for it.", _AT_TARGET)


def test_what_only_one_class_of_errors_tells_is_kept(tmp_path: Path) -> None:
    problem = Problem(severity=Severity.ERROR, message="unknown key topcis", line=3)
    error: MirrorError = InvalidConfigurationError("/f", (problem,))

    report = _read_back(tmp_path, error_report(error))

    assert report.exit_code == 2
    assert report.error is not None
    assert report.error.more == {"problems": error.attributes()["problems"]}


def test_what_was_left_out_comes_back_with_its_place(tmp_path: Path) -> None:
    known = Poison(2, 5, 3, "record-too-large", "It is too large.", quarantined=True)
    hidden = Poison(7, 9, None, "corrupt-batch", "Its CRC is wrong.")

    report = _read_back(tmp_path, _report(replace(_DONE, poison=(known, hidden))).to_dict())

    assert (report.exit_code, report.skipped) == (0, 4)
    assert report.skipped_ranges == (
        SkippedRange("orders", 0, 2, 5, 3, "record-too-large", "It is too large.", quarantined=True),
        SkippedRange("orders", 0, 7, 9, None, "corrupt-batch", "Its CRC is wrong.", quarantined=False),
    )
    assert str(report.skipped_ranges[0]) == (
        "[record-too-large] orders-0, offsets 2 to 4 (in the quarantine topic): It is too large."
    )
