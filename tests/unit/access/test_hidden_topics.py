"""Topics that a cluster does not list because the user may not describe them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

import pytest

from mirror_lib.cluster.admin.client import ClusterAdmin, PerTopic, TopicDescription
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import AuthorizationError, ClusterError, TopicMissingError
from mirror_lib.sync.hidden_by_acls import Unseen, hidden_topics, in_words, unseen_topics
from mirror_lib.topology.names import TopicPartition

#: Partitions that have a position.
GONE, OLD, OLD_1 = TopicPartition("gone", 0), TopicPartition("old", 0), TopicPartition("old", 1)


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


def test_what_may_not_be_described_is_told_from_what_is_not_there_and_only_what_was_not_listed_is_asked_for() -> None:
    for wanted, listed, hidden, asked in (
        (["secret", "gone"], [], ["secret"], ["gone", "secret"]),
        (["orders", "secret"], ["orders", "others"], ["secret"], ["secret"]),
        (["orders"], ["orders"], [], []),
    ):
        cluster = _Cluster(forbidden=["secret"])
        assert list(_hidden(cluster, wanted, listed)) == hidden
        assert cluster.asked == asked


class _Denying(_Cluster):
    """May not be asked about anything that it does not list."""

    def describe_topics(self, names: Iterable[str]) -> PerTopic[TopicDescription]:
        wanted = sorted(names)
        self.asked += wanted
        return PerTopic({}, {name: AuthorizationError(f"the user needs DESCRIBE on {name}.") for name in wanted})


def _unseen(
    config: MirrorConfig,
    *,
    listed: Collection[str] = (),
    copied: Collection[TopicPartition] = (),
    stopped: Collection[TopicPartition] = (),
) -> tuple[set[str], set[str]]:
    """What is refused, and what is doubtful."""
    flow = config.flow("A->B")
    cluster = cast(ClusterAdmin, _Denying(forbidden=()))
    unseen = unseen_topics(cluster, flow, flow_topology(flow), listed, copied, stopped)
    return set(unseen.refused), set(unseen.doubtful)


_COPIED = [GONE, OLD, OLD_1]


@pytest.mark.parametrize(
    ("topics", "known", "refused", "doubtful"),
    [
        pytest.param("orders, payments", {"listed": ["payments"]}, {"orders"}, set(), id="named by the configuration"),
        # Together with its literal ACL: whoever may not describe a name does not hear that it is missing.
        pytest.param(None, {"copied": [GONE, OLD], "listed": ["old"]}, set(), {"gone"}, id="maybe deleted"),
        pytest.param("gone, old.*", {"copied": [GONE, OLD]}, {"gone"}, {"old"}, id="named and copied"),
        pytest.param("my.events", {"listed": ["my-events"]}, set(), set(), id="a dot for another character"),
        pytest.param("my.events", {"listed": ["others"]}, set(), {"my.events"}, id="a dot that may be one"),
        pytest.param(None, {"copied": _COPIED, "stopped": [GONE, OLD]}, set(), {"old"}, id="stopped in part"),
        pytest.param(None, {"copied": _COPIED, "stopped": _COPIED}, set(), set(), id="all is stopped"),
        pytest.param("gone", {"copied": [GONE], "stopped": [GONE]}, set(), set(), id="named, and all is stopped"),
        pytest.param("orders.*", {"copied": [GONE]}, set(), set(), id="not taken any more"),
    ],
)
def test_topics_that_are_not_listed_are_refused_if_they_are_named_and_doubtful_if_only_a_position_tells_of_them(
    config_with: Callable[..., MirrorConfig],
    topics: str | None,
    known: dict[str, Any],
    refused: set[str],
    doubtful: set[str],
) -> None:
    config = config_with() if topics is None else config_with(f"topics = {topics}")

    assert _unseen(config, **known) == (refused, doubtful)


def test_only_refusals_are_told_apart() -> None:
    denied, failed = AuthorizationError("no."), ClusterError("down.")

    unseen = Unseen.of({"a": denied, "b": denied, "c": failed}, {"a"})

    assert (dict(unseen.refused), dict(unseen.doubtful)) == ({"a": denied}, {"b": denied})


def test_thousands_of_deleted_topics_make_few_lines() -> None:
    lines = list(in_words("Nothing of {}", {f"t{number}": AuthorizationError("no.") for number in range(1000)}))

    assert lines[0] == "Nothing of t0, which was deleted or is hidden: no."
    assert len(lines) == 51
    assert lines[-1] == "... and 950 more."
