"""Latest offsets of many partitions: one request to each leader, and the topics of the cluster by one request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka.protocol.metadata import MetadataRequest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.latest_offsets import encode_latest_offsets, parse_latest_offsets
from mirror_lib.cluster.protocol.produce import LIST_OFFSETS, LIST_OFFSETS_VERSION
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.leaders import by_leader
from mirror_lib.topology.names import TopicPartition


async def list_topics(client: RawClient) -> list[str]:
    """The topics that the login may describe.

    Raises:
        MirrorError: no broker responds.
    """
    request = MetadataRequest(None, allow_auto_topic_creation=False)
    response = await client.from_any(lambda node: client.send(node, request))
    client.learn(response)
    return sorted(topic[1] for topic in response.topics if not topic[0])


async def latest_offsets(
    client: RawClient, partitions: Iterable[TopicPartition], *, read_committed: bool
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The ends of partitions, and the error codes of partitions without a leader or whose leader reports an error.

    Args:
        client: must know the leaders (`refresh_leaders`).
        read_committed: last stable offsets instead of high watermarks.

    Raises:
        MirrorError: a leader does not respond.
    """
    ends: dict[TopicPartition, int] = {}
    grouped = by_leader(client, partitions)
    errors = dict.fromkeys(grouped.without, int(ErrorCode.LEADER_NOT_AVAILABLE))

    async def ask(node: int, wanted: list[TopicPartition]) -> memoryview:
        body = encode_latest_offsets(wanted, committed=read_committed)
        return await client.ask(node, LIST_OFFSETS, LIST_OFFSETS_VERSION, body)

    for response in await asyncio.gather(*(ask(node, wanted) for node, wanted in grouped.led.items())):
        for topic, number, error_code, offset in parse_latest_offsets(response):
            key = TopicPartition(topic, number)
            if error_code:
                errors[key] = error_code
            else:
                ends[key] = offset
    return ends, errors
