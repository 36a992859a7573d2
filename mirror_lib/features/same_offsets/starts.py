"""New target partitions begin at the offset at which the source's logs begin.

The end of an empty partition is moved there by filler, which is deleted at once (`padding`). A topic that compacts
takes neither records without a key nor DeleteRecords, so it deletes for that moment.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from mirror_lib.cluster.admin.client import ClusterAdmin, ConfigChange, ConfigOperation
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics.position_format import NOTHING_COPIED
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
    configs = target.topic_configs({place.topic for place in ends})
    known = {topic: each.value(_POLICY) for topic, each in configs.items()}
    policies = {topic: policy for topic, policy in known.items() if policy not in (None, _DELETE)}
    refused = {**configs.errors, **_set_policy(target, dict.fromkeys(policies, _DELETE))}
    ends = {place: each for place, each in ends.items() if place.topic not in refused}
    try:
        failed = asyncio.run(_fill(flow, ends)) if ends else {}
        filled = {place: end for place, (_, end) in ends.items() if place not in failed}
        failed |= {place: error for place, error in target.delete_records(filled).items() if error is not None}
    finally:
        kept = _set_policy(target, {topic: policy for topic, policy in policies.items() if topic not in refused})
    return (
        *(f"{topic} does not begin at the source's offsets yet: {error}" for topic, error in refused.items()),
        *(f"{place} does not begin at the source's offset yet: {error}" for place, error in failed.items()),
        *(f"cleanup.policy of {topic} is still {_DELETE}: {error}" for topic, error in kept.items()),
    )


def _lacking(
    flow: FlowConfig, topics: Mapping[str, str], source: ClusterAdmin, target: ClusterAdmin
) -> dict[TopicPartition, tuple[int, int]]:
    """The partitions that end before their source begins: their ends and the wanted ones."""
    described = source.describe_topics(topics)
    pairs = {
        TopicPartition(topics[topic], number): TopicPartition(topic, number)
        for topic, found in described.items()
        for number in range(len(found.partitions))
    }
    begins = source.list_offsets(pairs.values(), OffsetSpec.EARLIEST)
    wanted = {place: begins[origin].offset for place, origin in pairs.items() if begins[origin].error is None}
    wanted = {place: begin for place, begin in wanted.items() if begin > 0}
    starts = target.list_offsets(wanted, OffsetSpec.EARLIEST)
    ends = target.list_offsets(wanted, OffsetSpec.LATEST)
    lacking: dict[TopicPartition, tuple[int, int]] = {}
    filled: dict[TopicPartition, tuple[int, int]] = {}
    for place, begin in wanted.items():
        start, end = starts[place], ends[place]
        if (
            start.error is not None
            or end.error is not None
            or begin - end.offset > flow.copy_settings.offsets_pad_max_records
        ):
            continue
        if start.offset == end.offset < begin:
            lacking[place] = end.offset, begin
        elif start.offset < end.offset <= begin:
            filled[place] = start.offset, end.offset
    return lacking | {place: (filled[place][1], wanted[place]) for place in _left_over(flow, pairs, filled)}


def _left_over(
    flow: FlowConfig, pairs: Mapping[TopicPartition, TopicPartition], filled: Mapping[TopicPartition, tuple[int, int]]
) -> list[TopicPartition]:
    """The partitions with nothing but filler that a killed step has not deleted; not what a copy has written."""
    if not filled:
        return []
    stored = stored_positions(flow)
    unknown = {
        place: extent
        for place, extent in filled.items()
        if (position := stored.get(pairs[place])) is None or position.offset == NOTHING_COPIED
    }
    return asyncio.run(_with_filler(flow, unknown)) if unknown else []


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
