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


def test_topics_that_the_configuration_names_are_refused(config_with: Callable[..., MirrorConfig]) -> None:
    assert _unseen(config_with("topics = orders, payments"), listed=["payments"]) == ({"orders"}, set())


def test_a_topic_that_only_a_position_tells_of_may_be_deleted(config_with: Callable[..., MirrorConfig]) -> None:
    # Together with its literal ACL: whoever may not describe a name does not hear that it is missing.
    assert _unseen(config_with(), copied=[GONE, OLD], listed=["old"]) == (set(), {"gone"})


def test_a_named_topic_stays_refused_when_it_was_copied(config_with: Callable[..., MirrorConfig]) -> None:
    assert _unseen(config_with("topics = gone, old.*"), copied=[GONE, OLD]) == ({"gone"}, {"old"})


@pytest.mark.parametrize(("listed", "doubtful"), [(["my-events"], set()), (["others"], {"my.events"})])
def test_a_dot_may_stand_for_another_character(
    config_with: Callable[..., MirrorConfig], listed: list[str], doubtful: set[str]
) -> None:
    assert _unseen(config_with("topics = my.events"), listed=listed) == (set(), doubtful)


def test_topics_of_which_all_is_stopped_are_not_asked_about(config_with: Callable[..., MirrorConfig]) -> None:
    copied = [GONE, OLD, OLD_1]

    assert _unseen(config_with(), copied=copied, stopped=[GONE, OLD]) == (set(), {"old"})
    assert _unseen(config_with(), copied=copied, stopped=copied) == (set(), set())
    assert _unseen(config_with("topics = gone"), copied=[GONE], stopped=[GONE]) == (set(), set())


def test_positions_of_topics_that_the_flow_does_not_take_any_more_say_nothing(
    config_with: Callable[..., MirrorConfig],
) -> None:
    assert _unseen(config_with("topics = orders.*"), copied=[GONE]) == (set(), set())


def test_only_refusals_are_told_apart() -> None:
    denied, failed = AuthorizationError("no."), ClusterError("down.")

    unseen = Unseen.of({"a": denied, "b": denied, "c": failed}, {"a"})

    assert (dict(unseen.refused), dict(unseen.doubtful)) == ({"a": denied}, {"b": denied})


def test_thousands_of_deleted_topics_make_few_lines() -> None:
    lines = list(in_words("Nothing of {}", {f"t{number}": AuthorizationError("no.") for number in range(1000)}))

    assert lines[0] == "Nothing of t0, which was deleted or is hidden: no."
    assert len(lines) == 51
    assert lines[-1] == "... and 950 more."
