"""What a cluster does not show to a user who may not describe it.

Whoever asks for all topics or groups gets those that he may describe, and no word about the others: a flow would leave
them out as if they were not there. Asked for one by its name, brokers tell what is missing from what is forbidden, to
those who may describe the name: of a topic that was deleted together with its ACL they say that it is forbidden.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from mirror_lib.cluster.admin import ClusterAdmin
from mirror_lib.config import FlowConfig, named_topics, supposed_topics
from mirror_lib.errors import AuthorizationError, MirrorError, TopicMissingError
from mirror_lib.topology import FlowTopology, TopicPartition

#: A line for each of thousands of deleted topics helps nobody.
_LINES_SHOWN = 50
#: Of missing topics in a warning.
_TOPICS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unseen:
    """Topics or groups that a cluster does not list, by name: of refused ones it does not say whether they exist."""

    #: Those that the configuration names: whoever names them wants them.
    refused: Mapping[str, MirrorError]
    #: Those that are known otherwise. They may have been deleted.
    doubtful: Mapping[str, MirrorError]
    #: Those that the configuration names and that do not exist, by name: a misspelling, or they are yet to be created.
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, errors: Mapping[str, MirrorError], named: Collection[str]) -> Unseen:
        """Tell refusals and missing topics apart; other errors are not looked at.

        Args:
            named: what the configuration names.
        """
        refusals = {name: each for name, each in sorted(errors.items()) if isinstance(each, AuthorizationError)}
        return cls(
            {name: each for name, each in refusals.items() if name in named},
            {name: each for name, each in refusals.items() if name not in named},
            tuple(name for name in sorted(named) if isinstance(errors.get(name), TopicMissingError)),
        )


def in_words(what: str, doubtful: Mapping[str, MirrorError]) -> Iterator[str]:
    """What is doubtful, a line for each, for whoever reads the log.

    Args:
        what: what is not done for them, with `{}` for the name.
    """
    for name, error in islice(doubtful.items(), _LINES_SHOWN):
        yield f"{what.format(name)}, which was deleted or is hidden: {error}"
    if len(doubtful) > _LINES_SHOWN:
        yield f"... and {len(doubtful) - _LINES_SHOWN} more."


def about_missing(flow: FlowConfig, missing: Sequence[str]) -> Iterator[str]:
    """A warning about topics that the configuration names and the source does not list, if there are any."""
    if missing:
        shown = ", ".join(missing[:_TOPICS_SHOWN]) + (", ..." if len(missing) > _TOPICS_SHOWN else "")
        yield (
            f"`topics` of flow {flow.flow} names {shown}, which cluster {flow.flow.source} does not have or does not "
            "show: check the spelling; it is copied once it exists."
        )


def unseen_topics(
    admin: ClusterAdmin,
    flow: FlowConfig,
    topology: FlowTopology,
    listed: Collection[str],
    copied: Iterable[TopicPartition],
    stopped: Collection[TopicPartition] = (),
) -> Unseen:
    """The topics that a flow should see on its source, and does not.

    Args:
        listed: what the source has listed.
        copied: partitions that have a position.
        stopped: partitions that are not replicated any more; topics that have no others are not asked about.

    Raises:
        MirrorError: the source cannot be asked.
    """
    named = named_topics(flow)
    copied_topics = {place.topic for place in copied if place not in stopped}
    given_up = {place.topic for place in stopped} - copied_topics
    wanted = (named | supposed_topics(flow, listed) | copied_topics) - given_up
    return Unseen.of(_errors_of_unlisted(admin, filter(topology.replicates, wanted), listed), named)


def hidden_topics(admin: ClusterAdmin, wanted: Iterable[str], listed: Iterable[str]) -> dict[str, MirrorError]:
    """Those of the wanted topics of which the cluster does not even say whether they exist, with its refusals.

    Args:
        wanted: names that are known from elsewhere, such as the configuration or stored positions.
        listed: what the cluster has listed.

    Raises:
        MirrorError: the cluster cannot be asked.
    """
    errors = _errors_of_unlisted(admin, wanted, listed)
    return {topic: error for topic, error in sorted(errors.items()) if isinstance(error, AuthorizationError)}


def _errors_of_unlisted(admin: ClusterAdmin, wanted: Iterable[str], listed: Iterable[str]) -> Mapping[str, MirrorError]:
    unseen = set(wanted) - set(listed)
    return admin.describe_topics(unseen).errors if unseen else {}
