"""Target partitions without records end at the offset of the next record: at first where the source's logs begin.

The end of an empty partition is moved there by filler, which is deleted at once (`padding`). A topic that compacts
takes neither records without a key nor DeleteRecords, so it deletes for that moment.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Self

from mirror_lib.cluster.admin.client import ClusterAdmin, ConfigChange, ConfigOperation
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics.position_format import NOTHING_COPIED, Position
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.errors import MirrorError
from mirror_lib.features.same_offsets.padding import is_filled, pad
from mirror_lib.identity.positions import stored_positions
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: Seconds between two messages.
_TELL_SECONDS = 10.0
_POLICY, _DELETE = "cleanup.policy", "delete"


def prepare_starts(
    flow: FlowConfig, topics: Mapping[str, str], source: ClusterAdmin, target: ClusterAdmin
) -> tuple[str, ...]:
    """Move the ends of empty target partitions to the first offsets of the source; return what did not work.

    Args:
        topics: source topic -> its target topic, both of which exist.
        source: admin client of the source.
        target: admin client of the target.

    Raises:
        MirrorError: a cluster does not respond.
    """
    ends = _lacking(flow, topics, source, target)
    with Deletable(target, {place.topic for place in ends}) as topics_now:
        ends = {place: each for place, each in ends.items() if place.topic not in topics_now.refused}
        failed = asyncio.run(_fill(flow, ends)) if ends else {}
        filled = {place: end for place, (_, end) in ends.items() if place not in failed}
        failed |= {place: error for place, error in target.delete_records(filled).items() if error is not None}
    refused = topics_now.refused
    return (
        *(f"{topic} does not begin at the source's offsets yet: {error}" for topic, error in refused.items()),
        *(f"{place} does not begin at the source's offset yet: {error}" for place, error in failed.items()),
        *topics_now.still_deleting(),
    )


class Deletable:
    """Topics whose records can be deleted while the context is open: a topic that compacts deletes meanwhile.

    Attributes:
        refused: the topics for which that cannot be set.
    """

    def __init__(self, target: ClusterAdmin, topics: Collection[str]) -> None:
        self._target, self._topics = target, topics
        self._policies: dict[str, str | None] = {}
        self._kept: dict[str, MirrorError] = {}
        self.refused: dict[str, MirrorError] = {}

    def __enter__(self) -> Self:
        configs = self._target.topic_configs(self._topics)
        known = {topic: each.value(_POLICY) for topic, each in configs.items()}
        policies = {topic: policy for topic, policy in known.items() if policy not in (None, _DELETE)}
        self.refused = {**configs.errors, **_set_policy(self._target, dict.fromkeys(policies, _DELETE))}
        self._policies = {topic: policy for topic, policy in policies.items() if topic not in self.refused}
        return self

    def __exit__(self, *_: object) -> None:
        self._kept = _set_policy(self._target, self._policies)

    def still_deleting(self) -> tuple[str, ...]:
        """Say after the end of the context which topics could not be set back."""
        return tuple(f"cleanup.policy of {topic} is still {_DELETE}: {error}" for topic, error in self._kept.items())


def _lacking(
    flow: FlowConfig, topics: Mapping[str, str], source: ClusterAdmin, target: ClusterAdmin
) -> dict[TopicPartition, tuple[int, int]]:
    """The partitions without records that end before their source begins: their ends and the wanted ones."""
    described = source.describe_topics(topics)
    pairs = {
        TopicPartition(topics[topic], number): TopicPartition(topic, number)
        for topic, description in described.items()
        for number in range(len(description.partitions))
    }
    found = source.list_offsets(pairs.values(), OffsetSpec.EARLIEST)
    begins = {place: found[origin].offset for place, origin in pairs.items() if found[origin].error is None}
    begins = {place: begin for place, begin in begins.items() if begin > 0}
    starts = target.list_offsets(begins, OffsetSpec.EARLIEST)
    ends = target.list_offsets(begins, OffsetSpec.LATEST)
    extents = {
        place: (starts[place].offset, ends[place].offset)
        for place, begin in begins.items()
        if (starts[place].error or ends[place].error) is None and ends[place].offset <= begin
    }
    # If the target ends where the source begins, and holds nothing, all is as it should be.
    extents = {place: (start, end) for place, (start, end) in extents.items() if start < begins[place]}
    stored = stored_positions(flow) if extents else {}
    lacking: dict[TopicPartition, tuple[int, int]] = {}
    filled: dict[TopicPartition, tuple[int, int]] = {}
    for place, (start, end) in extents.items():
        wanted = _wanted(stored.get(pairs[place]), start, begins[place])
        if wanted is None or not 0 <= wanted - end <= flow.copy_settings.offsets_pad_max_records:
            continue
        if start < end:
            filled[place] = end, wanted
        elif end < wanted:
            lacking[place] = end, wanted
    left_over = asyncio.run(_with_filler(flow, {place: extents[place] for place in filled})) if filled else []
    return lacking | {place: filled[place] for place in left_over}


def _wanted(position: Position | None, start: int, begin: int) -> int | None:
    """The offset at which a target's log without records has to end before the next record; None if it is not known.

    A gap was accepted if the position was stored at the beginning of the log. Another log than that may have lost
    records: filler would hide it.

    Args:
        start: where the target's log begins.
        begin: where the source's log begins.
    """
    if position is None or position.offset == NOTHING_COPIED:
        return begin
    return min(position.offset + 1, begin) if position.target_offset == start else None


async def _with_filler(flow: FlowConfig, extents: Mapping[TopicPartition, tuple[int, int]]) -> list[TopicPartition]:
    async with open_clients(Connection.from_settings(flow.clients.data_producer)) as (client,):
        found = []
        for place, (start, end) in extents.items():
            reader = PartitionReader(client, place, flow.copy_settings, read_committed=False)
            # One that cannot be read is refused when it is copied, with the reason.
            with suppress(MirrorError):
                if await is_filled(reader.read, start, end):
                    found.append(place)
        return found


def _set_policy(target: ClusterAdmin, policies: Mapping[str, str | None]) -> dict[str, MirrorError]:
    """Set the cleanup policies of topics; return the errors of those where that failed."""
    changes = {topic: [ConfigChange(_POLICY, ConfigOperation.SET, policy)] for topic, policy in policies.items()}
    return {topic: error for topic, error in target.alter_topic_configs(changes).items() if error is not None}


async def _fill(flow: FlowConfig, ends: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, MirrorError]:
    progress = _Progress(flow, sum(end - first for first, end in ends.values()))
    async with open_clients(Connection.from_settings(flow.clients.data_producer)) as (client,):
        return await pad(
            client, flow.flow, ends, retry_seconds=flow.copy_settings.retry_max_seconds, on_padded=progress.advance
        )


class _Progress:
    """Logs now and then how far filling has come: a billion offsets take minutes."""

    def __init__(self, flow: FlowConfig, total: int) -> None:
        self._flow, self._total = flow.flow, total
        self._done, self._told_at = 0, time.monotonic()

    def advance(self, count: int) -> None:
        """Count offsets that are filled."""
        self._done += count
        if time.monotonic() >= self._told_at + _TELL_SECONDS:
            self._told_at = time.monotonic()
            _log.info("flow %s: %d of %d offsets before the first records filled", self._flow, self._done, self._total)
