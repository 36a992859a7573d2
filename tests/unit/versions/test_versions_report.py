"""What the table of versions says: each failure by its pair, and each limit once."""

from __future__ import annotations

from tools.versions.report import sentences
from tools.versions.results import STEPS, PairResult, StepResult

SLOW = "A source older than Kafka 3.0: groups are asked one after the other."


def a_pair(source: str, target: str, **failures: str) -> PairResult:
    return PairResult(source, target, [StepResult(step, failures.get(step)) for step in STEPS])


def test_a_pair_is_right_when_every_part_was_tried_and_none_failed() -> None:
    failed = a_pair("3.9", "4.3", copy="records differ")

    assert a_pair("2.8", "4.3").ok
    assert not failed.ok
    assert not PairResult("2.8", "4.3", [StepResult("topics")]).ok
    assert list(sentences([failed])) == ["FAILED 3.9 -> 4.3, copy: records differ"]


def test_what_a_version_cannot_do_is_said_once_with_the_pairs_that_it_concerns() -> None:
    results = [a_pair("2.8", "3.9"), a_pair("2.8", "4.3")]
    for result in results:
        result.limits = (SLOW,)
        result.steps[0] = StepResult("topics", degraded=("Left out.",))

    assert list(sentences(results)) == [
        "* Left out. (2.8 -> 3.9; 2.8 -> 4.3)",
        f"{SLOW} (2.8 -> 3.9; 2.8 -> 4.3)",
    ]
