"""What `./run security` tries and how it judges it."""

from __future__ import annotations

import json

from tools.security.__main__ import parse_arguments
from tools.security.report import failures
from tools.security.results import TASKS, TaskResult, WayResult
from tools.security.ways import WAYS


def result(way: str = "SSL", **failed: str) -> WayResult:
    return WayResult(way, [TaskResult(task, failed.get(task)) for task in TASKS], 3.0)


def test_every_protocol_and_mechanism_that_kafka_secures_is_a_way() -> None:
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
    over = [f"{mechanism} over {protocol}" for mechanism in mechanisms for protocol in ("SASL_PLAINTEXT", "SASL_SSL")]
    assert [way.name for way in WAYS] == ["SSL", "mutual TLS", *over]

    some = parse_arguments(["--mechanisms", "mutual, plain"]).mechanisms
    assert [way.name for way in some] == ["mutual TLS", "PLAIN over SASL_PLAINTEXT", "PLAIN over SASL_SSL"]


def test_a_way_is_right_only_when_every_task_was_tried_and_is_right() -> None:
    failed = result("mutual TLS", copy="it differs")

    assert result().ok
    assert not failed.ok
    assert not WayResult("SSL", [TaskResult("topics")]).ok
    assert list(failures([result(), failed])) == ["FAILED mutual TLS, copy: it differs"]
    # As a process of its own hands it over.
    assert WayResult.from_dict(json.loads(json.dumps(failed.to_dict()))) == failed
