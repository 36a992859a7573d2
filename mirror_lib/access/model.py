"""What a task of a flow must be allowed to do, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mirror_lib.topology import Grant, without_covered


class Side(StrEnum):
    """The part that a cluster has in a flow."""

    SOURCE = "source"
    TARGET = "target"


class AccessTask(StrEnum):
    """Work that needs rights of its own; in Airflow most of these are tasks of the flow's DAG."""

    #: Creating and growing target topics, and creating internal ones: `sync_topics`.
    SYNC_TOPICS = "sync-topics"
    #: Copying records and keeping positions: `replicate`.
    COPY = "copy"
    #: Going on where a run ended in the middle, or where MirrorMaker 2 ended.
    TAKE_OVER = "take-over"
    EMIT_HEARTBEATS = "emit-heartbeats"
    CHECK_HEARTBEATS = "check-heartbeats"
    SYNC_TOPIC_CONFIGS = "sync-topic-configs"
    SYNC_TOPIC_ACLS = "sync-topic-acls"
    #: Writing checkpoints.
    TRANSLATE_OFFSETS = "translate-offsets"
    #: Committing the offsets of groups on the target.
    SYNC_GROUP_OFFSETS = "sync-group-offsets"
    #: `mirror plan`, `observe`, `status` and forecasts.
    OBSERVE = "observe"
    VERIFY = "verify"
    #: Writing deletions that were lost.
    DELETE_KEYS = "delete-keys"
    #: A backfill into the flow's own topics.
    BACKFILL = "backfill"
    #: What a cutover needs beside the tasks that it repeats.
    CUTOVER = "cutover"


@dataclass(frozen=True, slots=True)
class RequiredAccess:
    """One right that one task needs on one cluster.

    Attributes:
        cluster: the alias.
        why: what it is for, as a phrase.
        mirror_maker: whether MirrorMaker 2 needs it for the same work.
        before: brokers since this version of Kafka do not ask for it; None: all do.
        hides: without it no request fails: brokers leave out of their responses what it is about.
    """

    task: AccessTask
    side: Side
    cluster: str
    grant: Grant
    why: str
    mirror_maker: bool = True
    before: str | None = None
    hides: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "cluster": self.cluster,
            "side": self.side.value,
            "task": self.task.value,
            "operation": self.grant.operation.value,
            "resource": self.grant.resource.value,
            "name": self.grant.name,
            "pattern": self.grant.pattern.value,
            "why": self.why,
            "mirror_maker_2": self.mirror_maker,
            "before": self.before,
            "hides": self.hides,
        }


#: Work that a person asks for, beside the flow's scheduled runs.
ON_DEMAND = frozenset({AccessTask.VERIFY, AccessTask.DELETE_KEYS, AccessTask.BACKFILL, AccessTask.CUTOVER})


def grants_by_cluster(required: Iterable[RequiredAccess]) -> dict[str, tuple[Grant, ...]]:
    """What is to be granted on each cluster, without what other grants make superfluous."""
    found: dict[str, list[Grant]] = {}
    for each in required:
        found.setdefault(each.cluster, []).append(each.grant)
    return {cluster: without_covered(grants) for cluster, grants in sorted(found.items())}
