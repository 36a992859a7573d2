"""Which topic of the target is the copy of which topic of the source, by their names. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mirror_lib.topology.policy import DefaultReplicationPolicy

#: Names of topics of Kafka and of replicators; they have no copy, or one that nobody compares.
_POLICY = DefaultReplicationPolicy({})


class TopicPair(NamedTuple):
    """A topic and its copy."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs, and what has none."""

    pairs: tuple[TopicPair, ...]
    #: Topics of the source without a copy.
    alone: tuple[str, ...] = ()
    #: Topics of the source with several topics that may be the copy.
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)


def is_internal(topic: str) -> bool:
    """True for topics of Kafka and of replicators."""
    return _POLICY.is_internal_topic(topic) or _POLICY.is_heartbeats_topic(topic)


def pair_topics(
    source: Collection[str],
    target: Collection[str],
    *,
    selected: Callable[[str], bool],
    named: Iterable[TopicPair] = (),
    copy_of: Callable[[str], str] | None = None,
) -> Pairing:
    """Pair topics: by the pairs that are named, else the topic of the same name, else the only one named `*.NAME`.

    Args:
        source: all topics of the source.
        target: all topics of the target.
        selected: whether a topic of the source is compared; internal ones never are.
        named: pairs given by the user; a missing topic is reported when it is read.
        copy_of: the name of a topic's copy, if that is known.
    """
    given = list(named)
    paired = {each.source for each in given}
    by_end: dict[str, list[str]] = defaultdict(list)
    for name in target:
        for place, letter in enumerate(name):
            if letter == ".":
                by_end[name[place + 1 :]].append(name)
    pairs, alone, ambiguous = list(given), [], {}
    for topic in sorted(source):
        if topic in paired or is_internal(topic) or not selected(topic):
            continue
        if copy_of is not None:
            copies = [copy] if (copy := copy_of(topic)) in target else []
        else:
            copies = [topic] if topic in target else sorted(by_end.get(topic, ()))
        if len(copies) == 1:
            pairs.append(TopicPair(topic, copies[0]))
        elif copies:
            ambiguous[topic] = tuple(copies)
        else:
            alone.append(topic)
    return Pairing(tuple(sorted(pairs)), tuple(alone), ambiguous)
