"""The job's command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.relay.job.arguments import JobArguments

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_ARGUMENTS = st.builds(
    JobArguments,
    config=st.sampled_from([Path("/etc/mirror.properties"), Path("-odd name=1.properties")]),
    flow=_TEXT,
    run_id=_TEXT,
    trigger=_TEXT,
    report=st.none() | st.just(Path("/tmp/report.json")),
    topics=st.lists(_TEXT, max_size=3).map(tuple),
    tasks=st.none() | st.integers(),
    max_seconds=st.none() | st.floats(min_value=0, allow_infinity=False),
    elapsed_seconds=st.none() | st.floats(min_value=0, allow_infinity=False),
    dry_run=st.booleans(),
    detached=st.booleans(),
    gaps=st.sampled_from(["ask", "accept", "recopy"]),
)


@given(_ARGUMENTS)
def test_the_job_reads_what_those_who_start_it_mean(arguments: JobArguments) -> None:
    assert JobArguments.parse(arguments.command_line()) == arguments


def test_a_person_needs_to_name_only_file_and_flow() -> None:
    arguments = JobArguments.parse(["--config", "f.properties", "--flow", "A->B"])

    assert arguments == JobArguments(config=Path("f.properties"), flow="A->B", trigger="spark-submit")
    assert arguments.run_id == "", "the job makes one"


def test_what_is_left_open_is_not_on_the_command_line() -> None:
    arguments = JobArguments(config=Path("/f"), flow="A->B", trigger="cli", max_seconds=90.0)

    assert arguments.command_line() == ["--config=/f", "--flow=A->B", "--trigger=cli", "--max-seconds=90"]


def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests) -> None:
    for argv in (
        [],
        ["--config=f"],
        ["--config=f", "--flow=A->B", "--tasks=many"],
        ["--config=f", "--flow=A->B", "--gaps=stop"],
    ):
        with subtests.test(argv=argv):
            with pytest.raises(SystemExit) as caught:
                JobArguments.parse(argv)

            assert caught.value.code == 2
            assert "usage: replicate.py" in capsys.readouterr().err
