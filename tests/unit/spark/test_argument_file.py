"""Command lines that the operating system would refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.spark.argument_file import expand, shorten


def test_a_short_command_line_stays_readable(tmp_path: Path) -> None:
    arguments = ["--config=/f", "--topics=orders"]

    assert shorten(arguments, tmp_path) == arguments
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=20)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_the_job_gets_the_arguments_that_were_meant(tmp_path_factory, words: list[str]) -> None:
    folder = tmp_path_factory.mktemp("arguments")
    for arguments in (words, [*words, "--topics=" + "x" * 50_000]):
        assert expand(shorten(arguments, folder)) == arguments


def test_what_is_left_of_a_megabyte_fits_into_a_command_line(tmp_path: Path) -> None:
    topics = ("x" * 200_000, *(f"{number:0>249}" for number in range(4_000)))
    arguments = JobArguments(config=Path("/f"), flow="A->B", topics=topics).command_line()

    command = shorten(arguments, tmp_path)
    subprocess.run([sys.executable, "-c", "", *command], check=True)

    assert JobArguments.parse(expand(command)).topics == topics
