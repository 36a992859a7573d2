"""Topics that a cluster does not list because the user may not describe them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

from mirror_lib.cluster.admin import ClusterAdmin, PerTopic, TopicDescription
from mirror_lib.errors import AuthorizationError, TopicMissingError
from mirror_lib.sync.hidden import hidden_topics


class _Cluster:
    """Answers as brokers do: of what may not be described they do not say whether it is there."""

    def __init__(self, *, forbidden: Collection[str]) -> None:
        self._forbidden = forbidden
        self.asked: list[str] = []

    def describe_topics(self, names: Iterable[str]) -> PerTopic[TopicDescription]:
        self.asked += sorted(names)
        kinds = {name: AuthorizationError if name in self._forbidden else TopicMissingError for name in self.asked}
        return PerTopic({}, {name: kind(f"no {name}.") for name, kind in kinds.items()})


def _hidden(cluster: _Cluster, wanted: Iterable[str], listed: Iterable[str]) -> dict[str, Any]:
    return dict(hidden_topics(cast(ClusterAdmin, cluster), wanted, listed))


def test_what_may_not_be_described_is_told_from_what_is_not_there() -> None:
    cluster = _Cluster(forbidden=["secret"])

    assert list(_hidden(cluster, ["secret", "gone"], [])) == ["secret"]


def test_only_what_was_not_listed_is_asked_for() -> None:
    cluster = _Cluster(forbidden=["secret"])

    _hidden(cluster, ["orders", "secret"], ["orders", "others"])

    assert cluster.asked == ["secret"]


def test_nothing_is_asked_where_all_are_listed() -> None:
    cluster = _Cluster(forbidden=[])

    assert _hidden(cluster, ["orders"], ["orders"]) == {}
    assert cluster.asked == []
