"""Settings of articles, which name topics one by one, in other words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.loader import check, load
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.topic_map import TranslatedFile, translate_topic_map

_ARTICLE = "bootstrap.servers = src:9092\ntarget.cluster.bootstrap.servers = dst:9092\n"
_MM2 = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"

_names = st.text(alphabet="abcXYZ019._-", min_size=1, max_size=20).filter(lambda name: name not in (".", ".."))


def _translate(text: str) -> TranslatedFile:
    return translate_topic_map(text.encode("iso-8859-1"))


def _settings(text: str) -> Mapping[str, str]:
    return {key: entry.value for key, entry in parse_properties(text.encode("ascii")).effective.items()}


def _after(text: str) -> Mapping[str, str]:
    return _settings(_translate(text).text)


def test_a_file_of_an_article_becomes_one_that_copies_the_topics_it_names(tmp_path: Path) -> None:
    found = _translate(_ARTICLE + "source.replication.topic.orders=sales\nsource.replication.topic.a.b=c\n")

    file = tmp_path / "mirror.properties"
    file.write_text(found.text)
    flow = load(file).flow("source->target")
    assert flow.enabled
    assert flow.rename.explicit == {"orders": "sales", "a.b": "c"}
    assert not flow.rename.merge
    assert flow.topics == ("orders", r"a\.b"), "a dot stands for nothing else"
    assert flow.clients.data_consumer.properties["bootstrap.servers"] == "src:9092"
    assert flow.clients.data_producer.properties["bootstrap.servers"] == "dst:9092"
    assert check(file) == ()


def test_the_clusters_get_the_names_that_are_given() -> None:
    text = _ARTICLE + "source.cluster.security.protocol = SSL\nsource.replication.topic.x=y\nproducer.linger.ms = 5\n"

    found = translate_topic_map(text.encode(), source="eu", target="us")

    assert _settings(found.text) == {
        "clusters": "eu, us",
        "eu->us.enabled": "true",
        "eu.bootstrap.servers": "src:9092",
        "us.bootstrap.servers": "dst:9092",
        "eu.security.protocol": "SSL",
        "eu->us.mirror.topics.rename": "x:y",
        "eu->us.topics": "x",
        "us.producer.linger.ms": "5",
    }


def test_several_topics_for_one_are_a_merge_that_is_told() -> None:
    found = _translate(_MM2 + "A->B.source.replication.topic.x1=y\nA->B.source.replication.topic.x2=y\n")

    assert _settings(found.text)["A->B.mirror.topics.rename"] == "x1:y, x2:y"
    assert _settings(found.text)["A->B.mirror.topics.merge.enabled"] == "true"
    assert any("same number of partitions" in remark for remark in found.remarks)


def test_what_stands_before_a_name_stays_there() -> None:
    for prefix in ["", "A->B."]:
        name, key = f"{prefix}source.replication.topic.x", f"{prefix}mirror.topics.rename"
        found = _translate(f"{_MM2}{name}=y\n")

        assert found.settings == {key: "x:y"}, prefix
        (line,) = found.translated
        assert (line.line, line.name, line.key) == (5, name, key), prefix


def test_renames_of_a_flow_or_of_the_file_are_kept_in_its_list() -> None:
    after = _after(
        _MM2 + "source.replication.topic.x=y\nsource.replication.topic.a=b\nA->B.source.replication.topic.x=z\n"
    )

    assert after["mirror.topics.rename"] == "x:y, a:b"
    assert after["A->B.mirror.topics.rename"] == "x:z, a:b"

    found = _translate(
        _MM2 + "mirror.topics.rename = a:b\nsource.replication.topic.x=y\nsource.replication.topic.a=c\n"
    )

    assert _settings(found.text)["mirror.topics.rename"] == "a:b, x:y"
    (left,) = found.untranslated
    assert (left.line, left.reason) == (7, "mirror.topics.rename already contains a, for b")


def test_topics_that_are_chosen_already_stay_and_what_they_leave_out_is_told() -> None:
    found = _translate(
        _MM2 + "A->B.topics = x.*\nA->B.source.replication.topic.x1=a\nA->B.source.replication.topic.z=b\n"
    )

    assert _settings(found.text)["A->B.topics"] == "x.*"
    assert found.remarks == ("A->B.topics does not match z: add the topics to copy.",)


def test_what_has_no_counterpart_becomes_a_comment_with_the_reason() -> None:
    for line, reason in [
        ("source.replication.topic.a* = b", "'a*' is not a valid topic name"),
        ("source.replication.topic.a = b c", "'b c' is not a valid topic name"),
        ("source.replication.topic.a =", "'' is not a valid topic name"),
        ("source.replication.topic.a = b, c", "one topic of the target"),
        ("source.replication.group.id = g", "positions are stored"),
    ]:
        found = _translate(f"{_MM2}{line}\nsource.replication.topic.x=y\n")

        (left,) = found.untranslated
        assert (left.line, left.name) == (5, line.split(" ")[0]), line
        assert reason in left.reason, line
        assert f"\n# {line.split(' ')[0]}" in found.text, line
        assert _settings(found.text) == {**_settings(_MM2), "mirror.topics.rename": "x:y"}, line


def test_of_a_repeated_setting_the_last_one_counts() -> None:
    found = _translate(_MM2 + "source.replication.topic.x=y\nsource.replication.topic.x=z\n")

    assert found.settings == {"mirror.topics.rename": "x:z"}
    assert [(left.line, left.value) for left in found.untranslated] == [(5, "y")]


def test_one_factor_becomes_that_of_each_internal_topic_unless_it_has_its_own() -> None:
    after = _after(
        _MM2 + "replication.internal.topic.replication.factor = 1\nheartbeats.topic.replication.factor = 2\n"
        "source.replication.topic.x=y\n"
    )

    factors = {key: value for key, value in after.items() if key.endswith(".replication.factor")}
    assert factors == {
        "heartbeats.topic.replication.factor": "2",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
    }


def test_all_other_lines_stay_as_they_are_and_mean_the_same() -> None:
    others = "# a comment\n\n  key\\ with\\ blanks : a \\\n     b\r\n! another\nlast = \\u00e9"
    found = _translate(f"{_MM2}source.replication.topic.x = \\\n  y\n{others}")

    assert found.text == f"{_MM2}mirror.topics.rename = x:y\n{others}"

    text = _MM2 + "source.replication.topic.x=y\n# bient\u00f4t\nA->B.name = \u00e9\n"

    found = translate_topic_map(text.encode("iso-8859-1"))

    assert found.text.isascii()
    assert _settings(found.text)["A->B.name"] == "\u00e9"
    of_utf8 = translate_topic_map(text.encode("utf-8")).text
    assert "# bient\\u00f4t\n" in of_utf8


def test_a_file_that_cannot_be_read_or_has_none_of_these_settings_is_refused(subtests: pytest.Subtests) -> None:
    for text in [_MM2, "", "source.replication.topic.x = \\u12\n"]:
        with subtests.test(text), pytest.raises(ConfigurationError):
            _translate(text)


@given(st.dictionaries(_names, _names, min_size=1, max_size=6))
def test_every_map_is_kept_and_merges_exactly_where_a_target_is_there_twice(pairs: dict[str, str]) -> None:
    lines = "".join(f"A->B.source.replication.topic.{topic}={name}\n" for topic, name in pairs.items())

    found = _translate(_MM2 + lines)

    after = _settings(found.text)
    assert after["A->B.mirror.topics.rename"] == ", ".join(f"{topic}:{name}" for topic, name in pairs.items())
    assert ("A->B.mirror.topics.merge.enabled" in after) == (len(set(pairs.values())) < len(pairs))
    assert not any("source.replication.topic" in key for key in after)
    assert len(found.translated) == len(pairs)
    assert found.untranslated == ()
