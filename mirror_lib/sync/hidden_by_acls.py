"""Topics and groups that a cluster hides from a user without DESCRIBE permission.

A list of all topics or groups contains only those that the user may describe: a flow would skip the others as if they
did not exist. For a single name, brokers distinguish missing from forbidden only for users who may describe the name: a
topic that was deleted together with its ACL is reported as forbidden.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.name_patterns import named_topics, supposed_topics
from mirror_lib.errors import AuthorizationError, MirrorError, TopicMissingError
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

#: A line for each of thousands of deleted topics does not help.
_LINES_SHOWN = 50
#: Maximum number of missing topics in a warning.
_TOPICS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unseen:
    """Topics or groups that a cluster does not list, by name: if it refuses one, it may or may not exist."""

    #: Refused names from the configuration, which are wanted.
    refused: Mapping[str, MirrorError]
    #: Refused names from elsewhere. They may have been deleted.
    doubtful: Mapping[str, MirrorError]
    #: Missing names from the configuration: misspelled, or yet to be created.
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, errors: Mapping[str, MirrorError], named: Collection[str]) -> Unseen:
        """Separate refusals from missing topics; ignore other errors.

        Args:
            named: names in the configuration.
        """
        refusals = {name: each for name, each in sorted(errors.items()) if isinstance(each, AuthorizationError)}
        return cls(
            {name: each for name, each in refusals.items() if name in named},
            {name: each for name, each in refusals.items() if name not in named},
            tuple(name for name in sorted(named) if isinstance(errors.get(name), TopicMissingError)),
        )


def in_words(what: str, doubtful: Mapping[str, MirrorError]) -> Iterator[str]:
    """A log line for each doubtful name.

    Args:
        what: the consequence, with `{}` for the name.
    """
    for name, error in islice(doubtful.items(), _LINES_SHOWN):
        yield f"{what.format(name)}, which was deleted or is hidden: {error}"
    if len(doubtful) > _LINES_SHOWN:
        yield f"... and {len(doubtful) - _LINES_SHOWN} more."


def about_missing(flow: FlowConfig, missing: Sequence[str]) -> Iterator[str]:
    """A warning about topics that the configuration names and the source does not list; empty if there are none."""
    if missing:
        shown = ", ".join(missing[:_TOPICS_SHOWN]) + (", ..." if len(missing) > _TOPICS_SHOWN else "")
        yield (
            f"`topics` of flow {flow.flow} names {shown}, which cluster {flow.flow.source} does not have or does not "
            "show: check the spelling; the topic is copied as soon as it exists."
        )


def unseen_topics(
    admin: ClusterAdmin,
    flow: FlowConfig,
    topology: FlowTopology,
    listed: Collection[str],
    copied: Iterable[TopicPartition],
    stopped: Collection[TopicPartition] = (),
) -> Unseen:
    """The topics that a flow should see on its source, but does not.

    Args:
        listed: topics that the source has listed.
        copied: partitions that have a position.
        stopped: partitions that are no longer replicated; topics without other partitions are not checked.

    Raises:
        MirrorError: the source cannot be read.
    """
    named = named_topics(flow)
    copied_topics = {place.topic for place in copied if place not in stopped}
    given_up = {place.topic for place in stopped} - copied_topics
    wanted = (named | supposed_topics(flow, listed) | copied_topics) - given_up
    return Unseen.of(_errors_of_unlisted(admin, filter(topology.replicates, wanted), listed), named)


def hidden_topics(admin: ClusterAdmin, wanted: Iterable[str], listed: Iterable[str]) -> dict[str, MirrorError]:
    """Wanted topics that the cluster refuses without confirming that they exist, with the errors.

    Args:
        wanted: names from elsewhere, such as the configuration or stored positions.
        listed: topics that the cluster has listed.

    Raises:
        MirrorError: the cluster cannot be read.
    """
    errors = _errors_of_unlisted(admin, wanted, listed)
    return {topic: error for topic, error in sorted(errors.items()) if isinstance(error, AuthorizationError)}


def _errors_of_unlisted(admin: ClusterAdmin, wanted: Iterable[str], listed: Iterable[str]) -> Mapping[str, MirrorError]:
    unseen = set(wanted) - set(listed)
    return admin.describe_topics(unseen).errors if unseen else {}
