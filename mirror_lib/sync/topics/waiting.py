"""Waits for new topics and partitions, which brokers show some time after their creation."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import TopicDescription
from mirror_lib.errors import TransientError, Where

_PAUSES = (0.02, 0.05, 0.1, 0.2)
_PATIENCE_SECONDS = 15.0


def wait_until_visible(
    admin: ClusterAdmin, topics: Mapping[str, int], *, seconds: float = _PATIENCE_SECONDS
) -> dict[str, TransientError]:
    """Wait until topics have at least these numbers of partitions, each with a leader; return the errors of others.

    Args:
        seconds: maximum wait without progress. Thousands of topics take a controller minutes.
    """
    missing = sorted(topics)
    deadline = time.monotonic() + seconds
    for attempt in itertools.count():
        described = admin.describe_topics(missing) if missing else {}
        still = [name for name in missing if not _is_ready(described.get(name), topics[name])]
        if len(still) < len(missing):
            deadline = time.monotonic() + seconds
        missing = still
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
    return {
        name: TransientError(
            f"not all of its {topics[name]} partitions have a leader, and no other topic became ready for "
            f"{seconds:.0f} s.",
            where=Where(cluster=admin.cluster, topic=name),
            action="Check the brokers, then run again.",
        )
        for name in missing
    }


def _is_ready(topic: TopicDescription | None, partitions: int) -> bool:
    return (
        topic is not None
        and len(topic.partitions) >= partitions
        and all(partition.leader is not None for partition in topic.partitions)
    )
