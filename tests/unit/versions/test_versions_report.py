"""What the table of versions says: each failure by its pair, and each limit once."""

from __future__ import annotations

import pytest
from rich.console import Console

from versions.__main__ import parse_arguments
from versions.report import print_report, sentences
from versions.results import STEPS, PairResult, StepResult

SLOW = "A source older than Kafka 3.0: groups are asked one after the other."


def a_pair(source: str, target: str, **failures: str) -> PairResult:
    return PairResult(source, target, [StepResult(step, failures.get(step)) for step in STEPS])


def test_a_pair_is_right_when_every_part_was_tried_and_none_failed() -> None:
    assert a_pair("2.8", "4.3").ok
    assert not a_pair("2.8", "4.3", copy="records differ").ok
    assert not PairResult("2.8", "4.3", [StepResult("topics")]).ok


def test_failures_are_told_by_pair_and_part() -> None:
    told = list(sentences([a_pair("3.9", "4.3", copy="records differ")]))

    assert told == ["FAILED 3.9 -> 4.3, copy: records differ"]


def test_what_a_version_cannot_do_is_said_once_with_the_pairs_that_it_concerns() -> None:
    results = [a_pair("2.8", "3.9"), a_pair("2.8", "4.3")]
    for result in results:
        result.limits = (SLOW,)
        result.steps[0] = StepResult("topics", degraded=("Left out.",))

    assert list(sentences(results)) == [
        "* Left out. (2.8 -> 3.9; 2.8 -> 4.3)",
        f"{SLOW} (2.8 -> 3.9; 2.8 -> 4.3)",
    ]


def test_the_table_has_a_line_for_each_pair_and_marks_what_was_left_out() -> None:
    result = a_pair("2.8", "4.3", copy="x")
    result.steps[0] = StepResult("topics", degraded=("Left out.",))
    console = Console(width=150, record=True)

    print_report(console, [result])

    (line,) = [line for line in console.export_text().splitlines() if line.startswith("│")]
    assert [cell.strip() for cell in line.strip("│").split("│")][:5] == ["2.8", "4.3", "ok*", "FAILED", "ok"]


def test_a_version_that_is_not_known_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments(["--sources", "2.8, 4.3"]).sources == ("2.8", "4.3")
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["--sources", "1.0"])

    assert ended.value.code == 2
    assert "1.0 contains names other than 2.8, 3.6, 3.9, 4.1, 4.3, 4.4, kfake" in capsys.readouterr().err


def test_other_brokers_come_as_source_and_as_target_beside_the_newest_kafka() -> None:
    found = parse_arguments(["--brokers", "kfake"])

    assert (found.sources, found.targets) == (("kfake", "4.4"), ("kfake", "4.4"))
    assert parse_arguments(["--brokers", "kfake", "--sources", "2.8"]).sources == ("2.8",)


def test_versions_of_spark_are_chosen_by_name() -> None:
    assert parse_arguments(["--spark", "4.1,3.5"]).spark == ("4.1", "3.5")
    assert parse_arguments(["--spark", "all"]).spark == ("3.5", "4.0", "4.1", "4.2", "4.3")
    with pytest.raises(SystemExit):
        parse_arguments(["--spark", "2.4"])
