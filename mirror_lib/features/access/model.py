"""The rights that the tasks of a flow need, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mirror_lib.topology.access import Grant, without_covered


class Side(StrEnum):
    """The side of a flow that a cluster is on."""

    SOURCE = "source"
    TARGET = "target"


class AccessTask(StrEnum):
    """Work with its own rights; in Airflow most of these are tasks of the flow's DAG."""

    #: Create and grow target topics, and create internal ones: `sync_topics`.
    SYNC_TOPICS = "sync-topics"
    #: Copy records and store positions: `replicate`.
    COPY = "copy"
    #: Continue after an interrupted run, or after MirrorMaker 2.
    TAKE_OVER = "take-over"
    EMIT_HEARTBEATS = "emit-heartbeats"
    CHECK_HEARTBEATS = "check-heartbeats"
    SYNC_TOPIC_CONFIGS = "sync-topic-configs"
    SYNC_TOPIC_ACLS = "sync-topic-acls"
    #: Write checkpoints.
    TRANSLATE_OFFSETS = "translate-offsets"
    #: Commit the offsets of groups on the target.
    SYNC_GROUP_OFFSETS = "sync-group-offsets"
    #: `mirror plan`, `observe`, `status` and forecasts.
    OBSERVE = "observe"
    VERIFY = "verify"
    #: Write lost deletions.
    DELETE_KEYS = "delete-keys"
    #: A backfill into the flow's own topics.
    BACKFILL = "backfill"
    #: Rights of a cutover in addition to those of the tasks that it repeats.
    CUTOVER = "cutover"


@dataclass(frozen=True, slots=True)
class RequiredAccess:
    """One right that one task needs on one cluster.

    Attributes:
        cluster: the alias.
        why: its purpose, as a phrase.
        mirror_maker: True if MirrorMaker 2 needs it for the same work.
        before: brokers since this version of Kafka do not require it; None: all do.
        hides: without it no request fails, but brokers omit the resource from their responses.
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


#: Tasks that an operator starts, in addition to the flow's scheduled runs.
ON_DEMAND = frozenset({AccessTask.VERIFY, AccessTask.DELETE_KEYS, AccessTask.BACKFILL, AccessTask.CUTOVER})


def grants_by_cluster(required: Iterable[RequiredAccess]) -> dict[str, tuple[Grant, ...]]:
    """The rights to grant on each cluster, without those that other grants imply."""
    found: dict[str, list[Grant]] = {}
    for each in required:
        found.setdefault(each.cluster, []).append(each.grant)
    return {cluster: without_covered(grants) for cluster, grants in sorted(found.items())}
