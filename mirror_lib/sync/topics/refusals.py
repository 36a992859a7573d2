"""Finds topic configs that a cluster rejects, and repeats the request without them.

Managed services accept only some topic configs and values. A request with a rejected one changes nothing, and its error
rarely names the config in a machine-readable form: so each config of a rejected topic is validated alone, and the
request is repeated with the accepted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from mirror_lib.cluster.protocol.kafka_errors import PolicyViolationError, RequestRefusedError, UnsupportedRequestError
from mirror_lib.errors import MirrorError

#: Value by config; None for a deletion.
Configs = Mapping[str, str | None]
#: Sends a request for several topics. True: the cluster only validates it.
Attempt = Callable[[Mapping[str, Configs], bool], Mapping[str, MirrorError | None]]

#: Configs without which the cluster's default is unacceptable: a compacted topic would begin to delete its records.
INDISPENSABLE = frozenset({"cleanup.policy"})
_TOPICS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a request about the configs of topics."""

    #: By topic; None for success.
    errors: Mapping[str, MirrorError | None]
    #: By topic, the dropped configs with their errors.
    without: Mapping[str, Mapping[str, MirrorError]] = field(default_factory=dict)

    def notices(self, cluster: str) -> Iterator[str]:
        """Yield a sentence for each dropped config."""
        refused: dict[str, dict[str, MirrorError]] = {}
        for topic, names in self.without.items():
            for name, error in names.items():
                refused.setdefault(name, {})[topic] = error
        for name, topics in sorted(refused.items()):
            yield notice(cluster, name, topics)


def notice(cluster: str, name: str, topics: Mapping[str, MirrorError]) -> str:
    """Return a sentence about a dropped config.

    Args:
        cluster: its alias.
        name: of the config.
        topics: affected topics, each with the cluster's error.
    """
    shown = ", ".join(sorted(topics)[:_TOPICS_SHOWN])
    more = f" and {len(topics) - _TOPICS_SHOWN:,} more" if len(topics) > _TOPICS_SHOWN else ""
    reason = next(iter(topics.values())).what.rstrip(".")
    return (
        f"cluster {cluster} rejects the topic config {name}; topics without it: {shown}{more} ({reason}). Set "
        f"mirror.configs.never = {name} to skip it."
    )


def refuses_value(name: str, error: MirrorError) -> bool:
    """Return True if a cluster takes the value for no topic; otherwise it may contradict another config of this one.

    A policy, or a limit of Kafka's own (Java `ConfigException`, such as segment.bytes below 1 MiB since 4.0).
    """
    of_kafka = "Invalid value" in error.what and f"for configuration {name}" in error.what
    return isinstance(error, PolicyViolationError) or of_kafka


def is_unsupported(outcome: Mapping[str, MirrorError | None]) -> bool:
    """Return true if the cluster does not support the request at all."""
    return bool(outcome) and all(isinstance(error, UnsupportedRequestError) for error in outcome.values())


def done_without_refused(
    wanted: Mapping[str, Configs], attempt: Attempt, *, kept: Collection[str] = (), validate_only: bool = False
) -> Outcome:
    """Send a request for topics; repeat it without the configs that the cluster rejects.

    Args:
        wanted: configs by topic.
        attempt: sends the request.
        kept: configs that are never dropped: the topic's request fails then.
        validate_only: change nothing.
    """
    errors = dict(attempt(wanted, validate_only)) if wanted else {}
    refused: dict[tuple[str, str | None], MirrorError] = {}
    without: dict[str, dict[str, MirrorError]] = {}
    while doubtful := {
        topic: wanted[topic] for topic, error in errors.items() if isinstance(error, RequestRefusedError)
    }:
        fresh = _rejected_configs(doubtful, attempt, kept, refused)
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


def _rejected_configs(
    doubtful: Mapping[str, Configs],
    attempt: Attempt,
    kept: Collection[str],
    known: Mapping[tuple[str, str | None], MirrorError],
) -> dict[tuple[str, str | None], MirrorError]:
    """The rejected configs, each validated alone, of topics that the cluster would accept without them."""
    alone = {topic: {name: value for name, value in doubtful[topic].items() if name in kept} for topic in doubtful}
    possible = {topic for topic, error in attempt(alone, True).items() if error is None}
    untried: dict[tuple[str, str | None], str] = {}
    for topic in sorted(possible):
        for name, value in doubtful[topic].items():
            if name not in kept and (name, value) not in known:
                untried.setdefault((name, value), topic)
    found: dict[tuple[str, str | None], MirrorError] = {}
    while untried:
        # A request contains each topic once.
        pairs: dict[str, tuple[str, str | None]] = {}
        for pair, topic in untried.items():
            pairs.setdefault(topic, pair)
        responses = attempt({topic: {**alone[topic], pair[0]: pair[1]} for topic, pair in pairs.items()}, True)
        for topic, pair in pairs.items():
            del untried[pair]
            error = responses.get(topic)
            if isinstance(error, RequestRefusedError):
                found[pair] = error
    return found
