"""A corrected copy of a file: it passes, keeps its line numbers and values, and the original stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.loader import check
from mirror_lib.config.model import Severity
from mirror_lib.features.lint.fixes import fix

BASE = b"clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
FIXABLE = (
    *(b"A->B.topcs = orders", b"replication.facter = 1", b"  A.boostrap.servers=c:1", b"B->C.enabled = true"),
    *(b"foo.bar = 1", b"max.tasks = 3", b"num.streams = 4 \\\n  5", b"north->south.topics = x", b"A.what.ever = \\\\"),
    *(b"a->b.tasks.max = 1", b"A-&gt;B.tasks.max = 1", b"b.security.protocol = PLAINTEXT", b'"A->B.tasks.max" = 1'),
    *(b"C.bootstrap.servers = c:1", b"C.security.protocol = SSL", b"C.sasl.mechanism = PLAIN", b"C->A.topics = x"),
    *(b"sync.topic.confgs.enabled = false", b"mirror.shedule = 5m", b"topics.whitelist = x"),
)


def fixed_file(file: Path, data: bytes) -> bytes:
    file.write_bytes(data)
    return fix(data, check(file)).data


@given(st.lists(st.sampled_from(FIXABLE), max_size=6), st.sampled_from([b"\n", b"\r\n"]))
def test_the_copy_passes_and_keeps_lines_and_values(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "fixes.properties"
    data = b"".join([BASE, *(line + b"\n" for line in lines)]).replace(b"\n", end)

    copy = fixed_file(file, data)
    file.write_bytes(copy)

    assert [problem for problem in check(file) if problem.severity is not Severity.WARNING] == []
    assert copy.count(end) == data.count(end)
    values = {entry.line: entry.value for entry in parse_properties(data).entries}
    assert all(values[entry.line] == entry.value for entry in parse_properties(copy).entries)


def test_given_a_key_of_another_cluster_then_the_copy_changes_no_other_flow_or_cluster(tmp_path: Path) -> None:
    for line, fixed in [
        (b"b->a.enabled = true", b"B->A.enabled = true"),
        (b"a->b.topics = x", b"A->B.topics = x"),
        (b"A->B.mirror.way.back = true", b"A->B.mirror.failback = true"),
        (b"a.security.protocol = SSL", b"A.security.protocol = SSL"),
        ("A\u2192B.topics = x".encode(), b"A->B.topics = x"),
        (b"A-&gt;B.topics = x", b"A->B.topics = x"),
        (b"B->C.enabled = true", b"# B->C.enabled = true"),
        (b"C.security.protocol = SSL", b"# C.security.protocol = SSL"),
        # A prefix that nothing has is not dropped, and values are the author's.
        (b"old.topics = x", b"# old.topics = x"),
        (b"A->B.old.topics = x", b"# A->B.old.topics = x"),
        (b"tasks.max = many", b"tasks.max = many"),
        # The right key is set already.
        (b"tasks.max = 2\ntask.max = 9", b"tasks.max = 2\n# task.max = 9"),
    ]:
        assert fixed_file(tmp_path / "m.properties", BASE + line + b"\n") == BASE + fixed + b"\n", line


def test_given_an_alias_in_another_case_then_the_copy_has_all_its_lines(tmp_path: Path) -> None:
    data = BASE.replace(b"A.boot", b"a.boot").replace(b"A->B", b"a->b")

    assert fixed_file(tmp_path / "m.properties", data) == BASE


def test_the_command_writes_a_copy_and_shows_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "m.properties"
    data = BASE + b"A->B.topcs = orders\nmy.password = hush\n"
    file.write_bytes(data)

    done = CliRunner().invoke(app, ["config", "check", str(file), "--fix"])

    copy = tmp_path / "m.properties.fixed"
    assert done.exit_code == 0
    assert file.read_bytes() == data
    assert copy.read_bytes() == BASE + b"A->B.topics = orders\n# my.password = hush\n"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "line 5: renamed A->B.topcs to A->B.topics" in done.stdout
    assert "line 6: commented out my.password" in done.stdout
    assert "hush" not in done.output


def test_nothing_is_written_over_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "m.properties"
    file.write_bytes(BASE + b"foo.bar = 1\n")
    command = ["config", "check", str(file), "--fix"]

    taken = CliRunner().invoke(app, [*command, "--output", str(file)])
    assert taken.exit_code == 2
    assert file.read_bytes().endswith(b"\nfoo.bar = 1\n")

    done = CliRunner().invoke(app, [*command, "--in-place", "--json"])
    assert json.loads(done.stdout)["changes"] == [{"line": 5, "what": "commented out foo.bar"}]
    assert file.read_bytes().endswith(b"\n# foo.bar = 1\n")


def test_what_cannot_be_fixed_is_told_of_the_copy(tmp_path: Path) -> None:
    file = tmp_path / "m.properties"
    file.write_bytes(BASE + b"tasks.max = many\nfoo.bar = 1\n")

    done = CliRunner().invoke(app, ["config", "check", str(file), "--fix"])

    assert done.exit_code == 2
    assert "m.properties.fixed: line 5: error: tasks.max must be" in done.stdout


def test_a_rename_that_would_make_an_error_is_left_and_told(tmp_path: Path) -> None:
    file = tmp_path / "m.properties"
    # Neither is the location of a topic, nor is there a password for PLAIN.
    lines = b"offset-syncs.topic.locaton = 1\nB.security.protocol = SASL_PLAINTEXT\nB.sasl.mechansim = PLAIN\n"
    file.write_bytes(BASE + lines + b"foo.bar = 1\nA->B.topcs = orders\n")

    done = CliRunner().invoke(app, ["config", "check", str(file), "--fix"])

    copy = tmp_path / "m.properties.fixed"
    assert copy.read_bytes() == BASE + lines + b"# foo.bar = 1\nA->B.topics = orders\n"
    assert "line 7: B.sasl.mechansim is not renamed to B.sasl.mechanism, which would make an error" in done.stdout


def test_what_a_misspelt_line_hides_is_told_in_the_same_pass(tmp_path: Path) -> None:
    file = tmp_path / "m.properties"
    identity = b"replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    file.write_bytes(BASE + b"b->a.enabled = true\ntasks.max = many\n" + identity)

    done = CliRunner().invoke(app, ["config", "check", str(file), "--json"])

    told = [(each["severity"], each["message"]) for each in json.loads(done.stdout)["problems"]]
    assert [severity for severity, _ in told] == ["warning", "error", "error"]
    assert "copied in a loop: <topic> on A -> <topic> on B -> <topic> on A" in told[0][1]
