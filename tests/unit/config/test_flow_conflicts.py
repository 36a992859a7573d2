"""What the flows of a file do to each other is told when the file is checked, before anything exists."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.loader import load
from mirror_lib.features.lint.flow_conflicts import meeting_problems

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
BOTH_WAYS = ("A->B.enabled = true", "B->A.enabled = true")
FAN_IN = ("A->C.enabled = true", "B->C.enabled = true")


def told(folder: Path, clusters: str, *lines: str) -> list[str]:
    path = folder / "mirror.properties"
    servers = [f"{alias}.bootstrap.servers = localhost:9" for alias in clusters]
    path.write_text("\n".join([f"clusters = {', '.join(clusters)}", *servers, *lines, ""]))
    return [problem.message for problem in meeting_problems(load(path))]


def test_kept_names_in_both_directions_go_in_a_circle(tmp_path: Path) -> None:
    for topics in ["topics = .*", "topics = orders-7, payments"]:
        messages = told(tmp_path, "AB", *BOTH_WAYS, IDENTITY, topics)

        assert messages, topics
        assert all("in a loop" in each for each in messages), topics
        # A topic that no line names is not called by a name.
        assert not any("orders on" in each for each in messages), topics
    (once,) = told(tmp_path, "AB", *BOTH_WAYS, IDENTITY, "topics = payments")
    assert "payments on A -> payments on B -> payments on A" in once


def test_two_flows_that_keep_names_meet_in_one_topic(tmp_path: Path) -> None:
    for topics in ["topics = .*", "topics = orders-7"]:
        (message,) = told(tmp_path, "ABC", *FAN_IN, IDENTITY, topics)

        assert "by A->C" in message, topics
        assert "by B->C" in message, topics
        assert "target-not-empty" in message, topics


def test_flows_that_do_not_meet_are_fine(tmp_path: Path) -> None:
    for lines in [
        BOTH_WAYS,
        FAN_IN,
        (*BOTH_WAYS, IDENTITY, "A->B.topics = east-.*", "B->A.topics = west-.*"),
        (*BOTH_WAYS, IDENTITY, "B->A.mirror.failback = true"),
        (*FAN_IN, IDENTITY, "A->C.topics = one", "B->C.topics = two"),
        ("A->B.enabled = true", IDENTITY),
    ]:
        assert told(tmp_path, "ABC", *lines) == [], lines


def test_the_check_of_a_file_tells_it(tmp_path: Path) -> None:
    told(tmp_path, "AB", *BOTH_WAYS, IDENTITY)

    result = CliRunner().invoke(app, ["config", "check", str(tmp_path / "mirror.properties")])

    assert result.exit_code == 0
    assert "in a loop" in result.output
