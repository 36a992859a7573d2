"""What `./run security` tries and how it tells of it."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from security.__main__ import parse_arguments
from security.report import failures, print_report
from security.results import TASKS, TaskResult, WayResult
from security.ways import WAYS


def result(way: str = "SSL", **failed: str) -> WayResult:
    return WayResult(way, [TaskResult(task, failed.get(task)) for task in TASKS], 3.0)


def test_every_protocol_and_mechanism_that_kafka_secures_is_a_way() -> None:
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
    over = [f"{mechanism} over {protocol}" for mechanism in mechanisms for protocol in ("SASL_PLAINTEXT", "SASL_SSL")]
    assert [way.name for way in WAYS] == ["SSL", "mutual TLS", *over]


def test_a_way_is_right_only_when_every_task_was_tried_and_is_right() -> None:
    assert result().ok
    assert not result(copy="it differs").ok
    assert not WayResult("SSL", [TaskResult("topics")]).ok


def test_a_result_comes_back_from_a_process_of_its_own_as_it_was() -> None:
    told = result(copy="it differs")
    assert WayResult.from_dict(json.loads(json.dumps(told.to_dict()))) == told


def test_the_report_has_a_row_for_each_way_and_a_line_for_each_failure() -> None:
    results = [result(), result("mutual TLS", copy="it differs")]
    written = io.StringIO()
    console = Console(width=150, file=written)

    print_report(console, results)

    assert [line.split()[1] for line in written.getvalue().splitlines() if line.startswith("│")] == ["SSL", "mutual"]
    assert list(failures(results)) == ["FAILED mutual TLS, copy: it differs"]


@pytest.mark.parametrize(
    ("named", "ways"),
    [
        ("SSL", ["SSL"]),
        ("mutual, plain", ["mutual TLS", "PLAIN over SASL_PLAINTEXT", "PLAIN over SASL_SSL"]),
    ],
)
def test_some_ways_are_named_by_their_mechanism(named: str, ways: list[str]) -> None:
    assert [way.name for way in parse_arguments(["--mechanisms", named]).mechanisms] == ways


def test_an_unknown_mechanism_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse_arguments(["--mechanisms", "AWS_MSK_IAM"])
    assert end.value.code == 2
    assert "SCRAM-SHA-512" in capsys.readouterr().err
