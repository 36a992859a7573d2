"""The report file: written as the job writes it, read as those read it who started the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mirror_lib.config.file.problems import InvalidConfigurationError
from mirror_lib.config.model import Problem, Severity
from mirror_lib.errors import FencedError, MirrorError, TopicMissingError, Where
from mirror_lib.relay.job.report import (
    Failure,
    JobReport,
    PlannedTopic,
    SkippedRange,
    error_report,
    plan_report,
    write_report,
)
from mirror_lib.relay.model import WHOLE_TOPIC, PartitionProblem, PartitionResult, Poison, RunPlan
from mirror_lib.relay.run_options import RunReport
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_plan, partition_result

_FLOW = FlowId("A", "B")
_DONE = partition_result(partition_plan(end=10), seconds=0.25)
_AT_TARGET = Where(flow="A->B", cluster="B", topic="A.orders", partition=1, offset=7)
_FENCED = FencedError("another run has taken over.", where=_AT_TARGET, action="Wait for it.")
_FAILED = replace(_DONE, source=TopicPartition("orders", 1), records=3, bytes=300, source_next=3, error=_FENCED)
_MISSING = TopicMissingError("it is not there.", where=Where(flow="A->B", topic="lost"), action="Create it.")
_LOST = PartitionProblem(TopicPartition("lost", WHOLE_TOPIC), _MISSING)


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
    report = JobReport.read(path)
    assert report is not None
    return report


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
    report = _read_back(tmp_path, _report(_DONE, _FAILED, problems=(_LOST,)).to_dict())

    assert (report.exit_code, report.records) == (1, 13)
    assert report.failures == (
        Failure("fenced", "another run has taken over.", "Wait for it.", replace(_AT_TARGET, topic="orders")),
        Failure("topic-missing", "it is not there.", "Create it.", Where(flow="A->B", topic="lost")),
    )


def test_a_dry_runs_plan_is_added_up_per_topic(tmp_path: Path) -> None:
    first = partition_plan("t", 0, start=5, end=15, estimated_bytes=100)
    second = partition_plan("t", 1, start=0, end=1, estimated_bytes=3)
    plan = RunPlan(_FLOW, bins=((first,), (second,)), problems=(_LOST,), idle=6)

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
