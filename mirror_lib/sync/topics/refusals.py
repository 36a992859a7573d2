"""Topic configs that a cluster refuses, found out by asking, and done without.

Managed services accept a few configs of topics, and some values of them. A request with one that is refused changes
nothing, and its error seldom names the config in a form that programs can read: so each config of a refused topic is
tried by itself, without effect, and the request is sent again with those that are accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from mirror_lib.cluster.protocol import RequestRefusedError, UnsupportedRequestError
from mirror_lib.errors import MirrorError

#: Config -> value, None where it is deleted.
Configs = Mapping[str, str | None]
#: Sends a request for several topics. True asks the cluster to check everything and to change nothing.
Attempt = Callable[[Mapping[str, Configs], bool], Mapping[str, MirrorError | None]]

#: What must not be left to the cluster's default: a compacted topic would begin to delete its records.
INDISPENSABLE = frozenset({"cleanup.policy"})
_TOPICS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request about the configs of topics."""

    #: By topic; None for success.
    errors: Mapping[str, MirrorError | None]
    #: By topic, the configs that it was done without, and why.
    without: Mapping[str, Mapping[str, MirrorError]] = field(default_factory=dict)

    def notices(self, cluster: str) -> Iterator[str]:
        """Yield a sentence for each config that topics were done without."""
        refused: dict[str, dict[str, MirrorError]] = {}
        for topic, names in self.without.items():
            for name, error in names.items():
                refused.setdefault(name, {})[topic] = error
        for name, topics in sorted(refused.items()):
            yield notice(cluster, name, topics)


def notice(cluster: str, name: str, topics: Mapping[str, MirrorError]) -> str:
    """Return a sentence about a config that topics are done without.

    Args:
        cluster: its alias.
        name: of the config.
        topics: that are done without it, each with what the cluster said.
    """
    shown = ", ".join(sorted(topics)[:_TOPICS_SHOWN])
    more = f" and {len(topics) - _TOPICS_SHOWN:,} more" if len(topics) > _TOPICS_SHOWN else ""
    said = next(iter(topics.values())).what.rstrip(".")
    return (
        f"cluster {cluster} refuses the topic config {name}, so {shown}{more} are without it ({said}). "
        f"mirror.configs.never = {name} stops the question."
    )


def unsupported(outcome: Mapping[str, MirrorError | None]) -> bool:
    """Return true if the cluster does not know the request at all."""
    return bool(outcome) and all(isinstance(error, UnsupportedRequestError) for error in outcome.values())


def done_without_refused(
    wanted: Mapping[str, Configs], attempt: Attempt, *, kept: Collection[str] = (), validate_only: bool = False
) -> Outcome:
    """Send a request for topics, and again without the configs that the cluster refuses.

    Args:
        wanted: configs by topic.
        attempt: sends the request.
        kept: configs that no topic is done without: then it stays refused.
        validate_only: change nothing.
    """
    errors = dict(attempt(wanted, validate_only)) if wanted else {}
    refused: dict[tuple[str, str | None], MirrorError] = {}
    without: dict[str, dict[str, MirrorError]] = {}
    while doubtful := {
        topic: wanted[topic] for topic, error in errors.items() if isinstance(error, RequestRefusedError)
    }:
        fresh = _refused(doubtful, attempt, kept, refused)
        refused |= fresh
        again: dict[str, Configs] = {}
        for topic, configs in doubtful.items():
            lacking = {name: refused[name, value] for name, value in configs.items() if (name, value) in refused}
            if lacking.keys() != without.get(topic, {}).keys():
                without[topic] = lacking
                again[topic] = {name: value for name, value in configs.items() if name not in lacking}
        if not again:
            break
        errors |= attempt(again, validate_only)
    return Outcome(errors, {topic: names for topic, names in without.items() if errors[topic] is None})


def _refused(
    doubtful: Mapping[str, Configs],
    attempt: Attempt,
    kept: Collection[str],
    known: Mapping[tuple[str, str | None], MirrorError],
) -> dict[tuple[str, str | None], MirrorError]:
    """Which configs the cluster refuses, each tried by itself, of topics that it would take without them."""
    alone = {topic: {name: value for name, value in doubtful[topic].items() if name in kept} for topic in doubtful}
    possible = {topic for topic, error in attempt(alone, True).items() if error is None}
    untried: dict[tuple[str, str | None], str] = {}
    for topic in sorted(possible):
        for name, value in doubtful[topic].items():
            if name not in kept and (name, value) not in known:
                untried.setdefault((name, value), topic)
    found: dict[tuple[str, str | None], MirrorError] = {}
    while untried:
        # A request has a topic once.
        pairs: dict[str, tuple[str, str | None]] = {}
        for pair, topic in untried.items():
            pairs.setdefault(topic, pair)
        answers = attempt({topic: {**alone[topic], pair[0]: pair[1]} for topic, pair in pairs.items()}, True)
        for topic, pair in pairs.items():
            del untried[pair]
            error = answers.get(topic)
            if isinstance(error, RequestRefusedError):
                found[pair] = error
    return found
