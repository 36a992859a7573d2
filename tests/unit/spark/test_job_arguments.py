"""A command line that is declared as a dataclass.

Command lines that the operating system would refuse.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.copy.job.arguments import GAP_CHOICES, JobArguments
from mirror_lib.features.cutover.job_arguments import CutoverArguments
from mirror_lib.features.cutover.model import Step
from mirror_lib.spark.argument_file import expand, shorten
from mirror_lib.spark.job_arguments import CommandLine

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_NUMBER = st.floats(allow_nan=False)


class Colour(Enum):
    """Some choices."""

    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, slots=True)
class Everything(CommandLine):
    """An argument of each type."""

    program: ClassVar[str] = "everything.py"
    description: ClassVar[str] = "Has every type."

    path: Annotated[Path, "a file"]
    number: Annotated[int, "how many"] = 3
    size: Annotated[float | None, "how much"] = None
    share: Annotated[float, "of all"] = 1.5
    colour: Annotated[Colour, "which"] = Colour.RED
    other_colour: Annotated[Colour | None, "which else"] = None
    words: Annotated[tuple[str, ...], "any"] = ()
    is_new: Annotated[bool, "new"] = False
    choice: Annotated[str, "one of two", ("a", "b")] = "a"


_EVERYTHING = st.builds(
    Everything,
    path=st.sampled_from([Path("-a b=c"), Path("/x")]),
    number=st.integers(),
    size=st.none() | _NUMBER,
    share=_NUMBER,
    colour=st.sampled_from(Colour),
    other_colour=st.none() | st.sampled_from(Colour),
    words=st.lists(_TEXT, max_size=3).map(tuple),
    is_new=st.booleans(),
    choice=st.sampled_from("ab"),
)
_CUTOVERS = st.builds(
    CutoverArguments,
    config=st.just(Path("/x")),
    name=_TEXT,
    by=_TEXT,
    until=st.none() | st.sampled_from(Step),
    wait_seconds=_NUMBER,
    confirm=st.none() | st.sampled_from(Step),
    note=st.none() | _TEXT,
)
_SECONDS = st.none() | _NUMBER
_JOBS = st.builds(
    JobArguments,
    config=st.sampled_from([Path("/etc/mirror.properties"), Path("-odd name=1.properties")]),
    report=st.none() | st.just(Path("/tmp/report.json")),
    max_seconds=_SECONDS,
    poll_seconds=_SECONDS,
    elapsed_seconds=_SECONDS,
    gaps=st.sampled_from(GAP_CHOICES),
)


@given(_EVERYTHING | _CUTOVERS | _JOBS)
def test_what_is_written_is_read_again(arguments: CommandLine) -> None:
    assert type(arguments).parse(arguments.command_line()) == arguments


def test_what_has_its_default_is_not_written() -> None:
    assert Everything(path=Path("/x"), is_new=True).command_line() == ["--path=/x", "--is-new"]


def test_a_wrong_command_line_ends_with_2_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, said in (
        ([], "the following arguments are required: --path"),
        (["--path=x", "--number=many"], "argument --number: invalid int value: 'many'"),
        (["--path=x", "--colour=blue"], "argument --colour: invalid choice: 'blue'"),
        (["--path=x", "--choice=c"], "argument --choice: invalid choice: 'c'"),
        (["--path=x", "--colours=red"], "unrecognized arguments: --colours=red"),
    ):
        with pytest.raises(SystemExit) as ended:
            Everything.parse(argv)

        assert ended.value.code == 2, argv
        assert said in capsys.readouterr().err


def test_the_help_names_each_argument_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Everything.parse(["--help"])

    shown = capsys.readouterr().out
    assert "usage: everything.py" in shown
    for option, about in (("--other-colour {red,green}", "which else"), ("--words WORDS", "any"), ("--is-new", "new")):
        assert option in shown
        assert about in shown


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
