"""`mirror config import` of files of MirrorMaker 1, and `mirror config import-topics`."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from mirror_lib.config.file.properties import parse_properties
from mirror_lib.topology.java_regex import compile_java
from tests.support.terminal import invoke


@pytest.fixture
def old_files(tmp_path: Path) -> list[str]:
    consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
    consumer.write_text(
        "bootstrap.servers=a:9092\ngroup.id=mm\nssl.truststore.password=hush\nmy.password=hush2\nfetch.min.bytes=1\n"
    )
    producer.write_text("bootstrap.servers=b:9092\n")
    # As they stood behind kafka-mirror-maker.sh.
    return ["--consumer.config", str(consumer), "--producer.config", str(producer), "--whitelist", "orders"]


def _run(*arguments: object) -> tuple[int, str, str]:
    return invoke("config", "import", "--source", "A", "--target", "B", *arguments)


def test_stdout_is_the_file_and_stderr_tells_what_became_of_the_settings(old_files: list[str], tmp_path: Path) -> None:
    code, shown, told = _run(*old_files, "--num.streams", 2)

    assert code == 0
    assert "A->B.topics = orders\n" in shown
    assert "tasks.max = 2\n" in shown
    assert "comments with reasons" in told
    (tmp_path / "new.properties").write_text(shown)
    code, checked, _ = invoke("config", "check", tmp_path / "new.properties")
    assert code == 0
    assert "0 error(s), 0 warning(s)" in checked


def test_a_written_file_is_readable_for_its_owner_alone_and_not_replaced_unasked(
    old_files: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "new.properties"

    code, shown, _ = _run(*old_files, "--output", path)

    assert (code, shown) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "A.ssl.truststore.password = hush\n" in path.read_text()
    path.write_text("mine")
    assert _run(*old_files, "--output", path)[0] == 2
    assert path.read_text() == "mine"
    assert _run(*old_files, "--output", path, "--force")[0] == 0
    assert "A->B.topics" in path.read_text()
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".new")] == []


def test_the_document_names_every_setting_and_no_secret(old_files: list[str]) -> None:
    code, shown, _ = _run(*old_files, "--json")

    document = json.loads(shown)
    assert code == 0
    assert "hush" not in shown
    assert {each["name"] for each in document["placed"]} >= {"bootstrap.servers", "ssl.truststore.password", "include"}
    assert {each["name"] for each in document["listed"]} == {"group.id", "my.password", "fetch.min.bytes"}
    assert (document["group"], document["problems"], document["to_be_settled"]) == ("mm", [], [])


def test_errors_that_remain_are_told_with_exit_code_2(old_files: list[str], tmp_path: Path) -> None:
    (tmp_path / "producer.properties").write_text("bootstrap.servers=b\n")

    code, shown, told = _run(*old_files)

    assert (code, "B.bootstrap.servers = b\n" in shown) == (2, True)
    assert "B.bootstrap.servers must be a list of addresses" in told


def test_options_that_make_no_configuration_are_refused_with_what_to_do(old_files: list[str], tmp_path: Path) -> None:
    for options, told in (
        (("--consumer.config", tmp_path / "none", "--producer.config", "x", "--include", "y"), "cannot be read"),
        # No cluster is left out silently.
        ((*old_files, "--consumer.config", old_files[1]), "--consumer.config was passed 2 times"),
        ((*old_files, "--consumer.config", old_files[1]), "own --source"),
        ((*old_files, "--blacklist", "x"), "--include and --blacklist"),
        # The star of Kafka's old documentation.
        ((*old_files[:4], "--whitelist", "*"), "write .* for any text"),
    ):
        code, shown, error = _run(*options)
        assert (code, shown) == (2, ""), options
        assert told in error


def test_given_a_blacklist_then_the_regex_selects_all_other_topics(old_files: list[str]) -> None:
    code, shown, _ = _run(*old_files[:4], "--blacklist", "orders, test-.*", "--new.consumer")

    assert code == 0
    found = next(line for line in shown.splitlines() if line.startswith("A->B.topics = "))
    regex = compile_java(parse_properties(f"{found}\n".encode()).entries[0].value)
    names = ["orders", "test-1", "orders2", "testing", "a"]
    assert [name for name in names if regex.fullmatch(name)] == ["orders2", "testing", "a"]
    assert "newer versions of MirrorMaker 1 ignored it" in shown


_ARTICLE = """\
bootstrap.servers = src:9092
ssl.truststore.password = hush
target.cluster.bootstrap.servers = dst:9092
source.replication.topic.orders = sales
source.replication.topic.a* = b
"""


@pytest.fixture
def article(tmp_path: Path) -> Path:
    path = tmp_path / "article.properties"
    path.write_text(_ARTICLE)
    return path


def _topics(*arguments: object) -> tuple[int, str, str]:
    return invoke("config", "import-topics", *arguments)


def test_topics_of_an_article_become_a_file_and_stderr_tells_what_became_of_the_lines(
    article: Path, tmp_path: Path
) -> None:
    code, shown, told = _topics(article, "--source", "A", "--target", "B")

    assert code == 0
    assert "A->B.mirror.topics.rename = orders:sales\n" in shown
    assert "line 5: source.replication.topic.a*: 'a*' is not a valid topic name" in told
    new = tmp_path / "new.properties"
    new.write_text(shown)
    assert invoke("config", "check", new)[:2] == (0, f"{new}: 0 error(s), 0 warning(s)\n")


def test_json_tells_the_same_of_an_article_without_secrets(article: Path) -> None:
    code, shown, _ = _topics(article, "--json")

    document = json.loads(shown)
    assert code == document["exit_code"] == 0
    assert "hush" not in shown
    assert {"name": "source->target.mirror.topics.rename", "value": "orders:sales"} in document["settings"]
    assert [each["line"] for each in document["translated"]] == [1, 2, 3, 4]
    assert [each["line"] for each in document["untranslated"]] == [5]
    assert document["problems"] == []


def test_an_article_whose_result_has_errors_or_that_has_no_such_settings_ends_with_2(article: Path) -> None:
    for text, why in (
        (_ARTICLE + "tasks.max = 0\n", "tasks.max must be at least 1"),
        ("clusters = A, B\n", "no source.replication.topic"),
    ):
        article.write_text(text)
        code, _, told = _topics(article)
        assert code == 2
        assert why in told
