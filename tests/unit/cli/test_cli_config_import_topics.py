"""`mirror config import-topics`."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.support.terminal import invoke

_FILE = """\
bootstrap.servers = src:9092
ssl.truststore.password = hush
target.cluster.bootstrap.servers = dst:9092
source.replication.topic.orders = sales
source.replication.topic.a* = b
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "article.properties"
    path.write_text(_FILE)
    return path


def _run(*arguments: object) -> tuple[int, str, str]:
    return invoke("config", "import-topics", *arguments)


def test_stdout_is_the_file_and_stderr_tells_what_became_of_the_lines(file: Path, tmp_path: Path) -> None:
    code, shown, told = _run(file, "--source", "A", "--target", "B")

    assert code == 0
    assert "A->B.mirror.topics.rename = orders:sales\n" in shown
    assert "line 5: source.replication.topic.a*: 'a*' is not a valid topic name" in told
    new = tmp_path / "new.properties"
    new.write_text(shown)
    assert invoke("config", "check", new)[:2] == (0, f"{new}: 0 error(s), 0 warning(s)\n")


def test_a_written_file_is_readable_for_its_owner_alone_and_not_replaced_unasked(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.properties"

    code, shown, _ = _run(file, "--output", path)

    assert (code, shown) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "source.ssl.truststore.password = hush\n" in path.read_text()
    assert _run(file, "--output", path)[0] == 2
    assert _run(file, "--output", path, "--force")[0] == 0


def test_json_tells_the_same_without_secrets(file: Path) -> None:
    code, shown, _ = _run(file, "--json")

    document = json.loads(shown)
    assert code == document["exit_code"] == 0
    assert "hush" not in shown
    assert {"name": "source->target.mirror.topics.rename", "value": "orders:sales"} in document["settings"]
    assert [each["line"] for each in document["translated"]] == [1, 2, 3, 4]
    assert [each["line"] for each in document["untranslated"]] == [5]
    assert document["problems"] == []


def test_a_result_with_errors_and_a_file_without_such_settings_end_with_2(file: Path) -> None:
    for text, why in (
        (_FILE + "tasks.max = 0\n", "tasks.max must be at least 1"),
        ("clusters = A, B\n", "no source.replication.topic"),
    ):
        file.write_text(text)
        code, _, told = _run(file)
        assert code == 2
        assert why in told
