import json

import pytest

from mirror_lib.airflow.job_report import JobReport, ReplicationRunError, exit_code_in, failure_of
from mirror_lib.errors import ConfigurationError, ReplicationError


def write(path, **data):
    path.write_text(json.dumps(data))
    return path


def test_a_job_that_ended_before_writing_has_no_report(tmp_path):
    assert JobReport.read(tmp_path / "none.json") is None


def test_failed_partitions_and_refused_ones_are_both_problems(tmp_path):
    path = write(
        tmp_path / "report.json",
        exit_code=1,
        run_id="r1",
        records=7,
        bytes=70,
        seconds=1.5,
        partitions=[
            {"topic": "a", "partition": 0, "error": None},
            {"topic": "a", "partition": 1, "error": {"reason": "fenced", "what": "Gone.", "action": "Wait."}},
        ],
        problems=[{"topic": "b", "partition": 2, "reason": "topic-missing", "what": "No b.", "action": ""}],
    )
    report = JobReport.read(path)
    assert (report.records, report.failed) == (7, 2)
    assert [str(problem) for problem in report.problems] == [
        "[fenced] a-1: Gone. Wait.",
        "[topic-missing] b-2: No b.",
    ]


def test_xcom_keeps_only_the_first_problems_but_counts_all(tmp_path):
    rows = [{"topic": "a", "partition": n, "reason": "fenced", "what": "x", "action": ""} for n in range(30)]
    report = JobReport.read(write(tmp_path / "report.json", exit_code=1, problems=rows))
    assert (report.failed, len(report.to_dict()["problems"])) == (30, 20)


def test_a_dry_runs_plan_is_added_up_per_topic(tmp_path):
    plan = {
        "partitions": [
            {"topic": "t", "target_topic": "A.t", "start": 5, "end": 15, "estimated_bytes": 100},
            {"topic": "t", "target_topic": "A.t", "start": 0, "end": 1, "estimated_bytes": 3},
        ],
        "problems": [],
    }
    report = JobReport.read(write(tmp_path / "report.json", exit_code=0, dry_run=True, plan=plan))
    assert report.to_dict()["planned"] == [
        {"topic": "t", "target_topic": "A.t", "partitions": 2, "offsets": 11, "estimated_bytes": 103}
    ]


@pytest.mark.parametrize(
    ("message", "code"),
    [("Cannot execute: spark-submit. Error code is: 3.", 3), ("Error code is: 143", 143), ("killed", None)],
)
def test_the_exit_code_is_found_in_the_providers_message(message, code):
    assert exit_code_in(message) == code


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1, ReplicationRunError), (2, ConfigurationError), (3, ReplicationError), (None, ReplicationRunError)],
)
def test_the_exit_code_decides_the_error(code, kind):
    error = failure_of("A->B", code, None)
    assert type(error) is kind
    assert "A->B" in str(error)
