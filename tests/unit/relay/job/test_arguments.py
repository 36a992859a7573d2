"""The job's command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.relay.job.arguments import JobArguments


def test_a_person_needs_to_name_only_file_and_flow() -> None:
    arguments = JobArguments.parse(["--config", "f.properties", "--flow", "A->B"])

    assert arguments == JobArguments(config=Path("f.properties"), flow="A->B", trigger="spark-submit")
    assert arguments.run_id == "", "the job makes one"


def test_a_choice_about_gaps_that_a_job_does_not_know_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        JobArguments.parse(["--config=f", "--flow=A->B", "--gaps=stop"])

    assert caught.value.code == 2
    assert "usage: replicate.py" in capsys.readouterr().err
