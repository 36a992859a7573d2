"""Cutting requests into parts, and answers by topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.cluster.admin.results import batches, per_topic
from mirror_lib.errors import TopicMissingError


@given(st.lists(st.integers(0, 50)), st.integers(1, 40))
def test_parts_hold_everything_in_order_and_exceed_the_limit_only_by_a_single_item(
    items: list[int], limit: int
) -> None:
    parts = list(batches(items, limit, weight=lambda item: item))
    assert [item for part in parts for item in part] == items
    assert all(len(part) == 1 or sum(part) <= limit for part in parts)
    assert all(parts)


def test_answers_and_errors_are_told_apart() -> None:
    missing = TopicMissingError("gone")
    answers = per_topic({"a": 1, "b": missing})
    assert dict(answers) == {"a": 1}
    assert answers.errors == {"b": missing}
    assert "b" not in answers
    with pytest.raises(KeyError):
        answers["b"]


def test_only_what_was_set_on_the_topic_counts_as_its_own() -> None:
    entries = [
        ConfigEntry("cleanup.policy", "compact", ConfigOrigin.TOPIC),
        ConfigEntry("hidden", None, ConfigOrigin.TOPIC, sensitive=True),
        ConfigEntry("retention.ms", "1", ConfigOrigin.BROKER),
        ConfigEntry("segment.ms", "2", ConfigOrigin.DEFAULT),
    ]
    configs = TopicConfigs("t", {entry.name: entry for entry in entries})
    assert configs.set_on_topic() == {"cleanup.policy": "compact"}
    assert configs.value("retention.ms") == "1"
