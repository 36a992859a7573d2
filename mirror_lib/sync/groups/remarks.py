"""Sentences about a flow's groups that the operator has to know before they move, although nothing has failed. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mirror_lib.counted import counted
from mirror_lib.printable import printable
from mirror_lib.sync.groups.model import GroupRow
from mirror_lib.sync.groups.uncommitted import TopicSize

_NAMED = 3
#: Versions and least size of the metadata of Kafka Streams (Java `TopicPartitionMetadata`): times, no offsets.
_STREAMS_VERSIONS, _STREAMS_BYTES = (1, 2), 9


def remarks_on(rows: Iterable[GroupRow], sizes: Mapping[str, TopicSize]) -> tuple[str, ...]:
    """Return the remarks on a plan.

    Args:
        sizes: of the groups' topics, by source topic.
    """
    grown = [(topic, size.source, size.target) for topic, size in sorted(sizes.items()) if size.target > size.source]
    return (*more_partitions(grown), *_about_metadata(rows))


def more_partitions(topics: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """Yield what happens to keys in topics that have more partitions on the target.

    Args:
        topics: each with its numbers of partitions on the source and on the target.
    """
    if topics:
        named = ", ".join(f"{printable(topic)} ({source} -> {target})" for topic, source, target in topics[:_NAMED])
        more = f" and {len(topics) - _NAMED:,} more" if len(topics) > _NAMED else ""
        yield (
            f"{counted(len(topics), 'topic has', 'topics have')} more partitions on the target than on the source: "
            f"{named}{more}. There producers write most keys to other partitions: records of one key from before and "
            "after the switch are in two partitions, and consumers do not read them in order."
        )


def _about_metadata(rows: Iterable[GroupRow]) -> Iterator[str]:
    found = [row for row in rows if row.target_offset not in (None, row.upstream) and _may_hold_offsets(row.metadata)]
    if found:
        first = found[0]
        yield (
            f"{counted(len(found), 'committed offset has', 'committed offsets have')} metadata, and another offset on "
            f"the target, such as {printable(first.group)} on {first.source} ({first.upstream:,} -> "
            f"{first.target_offset:,}). The metadata is copied unchanged: if the client stores offsets in it (parallel "
            "consumers do), it would skip or repeat records there. If so, set mirror.group.metadata=drop."
        )


def _may_hold_offsets(metadata: str) -> bool:
    # librdkafka's admin client makes a zero of an empty text.
    if not metadata.strip("\0"):
        return False
    try:
        content = base64.b64decode(metadata, validate=True)
    except (binascii.Error, ValueError):
        return True
    return len(content) < _STREAMS_BYTES or content[0] not in _STREAMS_VERSIONS
