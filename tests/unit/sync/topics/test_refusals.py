"""Configs that a cluster refuses are found by asking. The cluster here is a set of pairs that it refuses."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.kafka_errors import PolicyViolationError, UnsupportedRequestError
from mirror_lib.errors import MirrorError
from mirror_lib.sync.topics.refusals import Configs, done_without_refused, is_unsupported, notice

NAMES, VALUES = ("cleanup.policy", "retention.ms", "segment.bytes", "max.message.bytes"), ("1", "2")
PAIRS = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)))
WANTED = st.dictionaries(
    st.sampled_from(("a", "b", "c", "d")),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES)),
)


class Cluster:
    """It refuses some configs, and some topics whatever configs they have."""

    def __init__(self, refused: set[tuple[str, str]], forbidden: set[str]) -> None:
        self.refused, self.forbidden = refused, forbidden
        self.topics: dict[str, dict[str, str | None]] = {}
        self.requests = 0

    def attempt(self, wanted: Mapping[str, Configs], validate_only: bool) -> dict[str, MirrorError | None]:
        self.requests += 1
        answers: dict[str, MirrorError | None] = {}
        for topic, configs in wanted.items():
            bad = topic in self.forbidden or any(pair in self.refused for pair in configs.items())
            answers[topic] = PolicyViolationError("no.") if bad else None
            if not bad and not validate_only:
                self.topics[topic] = dict(configs)
        return answers


@given(
    wanted=WANTED, refused=PAIRS, forbidden=st.sets(st.sampled_from(("a", "b"))), kept=st.sampled_from([(), NAMES[:1]])
)
def test_every_topic_gets_all_that_the_cluster_takes(
    wanted: dict[str, dict[str, str]], refused: set[tuple[str, str]], forbidden: set[str], kept: tuple[str, ...]
) -> None:
    cluster = Cluster(refused, forbidden)

    done = done_without_refused(wanted, cluster.attempt, kept=kept)

    impossible = forbidden | {
        topic
        for topic, configs in wanted.items()
        if any(pair in refused and pair[0] in kept for pair in configs.items())
    }
    assert {topic for topic, error in done.errors.items() if error is not None} == impossible & wanted.keys()
    taken = {
        topic: {name: value for name, value in configs.items() if (name, value) not in refused}
        for topic, configs in wanted.items()
        if topic not in impossible
    }
    assert cluster.topics == taken
    assert {topic: set(names) for topic, names in done.without.items() if names} == {
        topic: wanted[topic].keys() - configs.keys() for topic, configs in taken.items() if configs != wanted[topic]
    }
    # Once with all, once without any, each pair once, and once with what is left.
    assert cluster.requests <= 3 + len(NAMES) * len(VALUES)


def test_nothing_is_asked_for_no_topics() -> None:
    cluster = Cluster(set(), set())
    assert done_without_refused({}, cluster.attempt).errors == {}
    assert cluster.requests == 0


def test_a_notice_shows_three_topics_and_counts_the_others() -> None:
    topics = {f"t{number}": PolicyViolationError("no such config.") for number in range(5)}
    assert notice("B", "segment.bytes", topics) == (
        "cluster B rejects the topic config segment.bytes; topics without it: t0, t1, t2 and 2 more (no such config). "
        "Set mirror.configs.never = segment.bytes to skip it."
    )


def test_a_request_that_no_topic_gets_an_answer_to_is_unsupported() -> None:
    assert is_unsupported({"a": UnsupportedRequestError("no."), "b": UnsupportedRequestError("no.")})
    assert not is_unsupported({"a": UnsupportedRequestError("no."), "b": None})
    assert not is_unsupported({})
