"""Changes single configs of topics (IncrementalAlterConfigs, KIP-339); other configs of a topic are unchanged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AlterConfigOpType,
    ConfigResource,
)
from confluent_kafka.admin import ConfigEntry as NativeEntry  # type: ignore[attr-defined]

from mirror_lib.cluster.admin.requests import AdminCalls, raise_if_unreachable
from mirror_lib.cluster.admin.results import batches
from mirror_lib.errors import MirrorError, Where
from mirror_lib.topology.access import Grant, Operation

#: A KRaft controller writes one metadata record per change, and rejects requests that need more than 10,000.
_CHANGES_AT_ONCE = 5_000


class ConfigOperation(StrEnum):
    """The operation on a config (Java `AlterConfigOp.OpType`)."""

    SET = "set"
    #: The topic uses the cluster's default again.
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of one config of a topic; `value` is None for a deletion."""

    name: str
    operation: ConfigOperation
    value: str | None = None


def alter_topic_configs(
    calls: AdminCalls, cluster: str, changes: Mapping[str, Sequence[ConfigChange]], *, validate_only: bool = False
) -> dict[str, MirrorError | None]:
    """See `ClusterAdmin.alter_topic_configs`."""
    deadline = calls.begin()
    outcome: dict[str, MirrorError | None] = {}
    wanted = [(topic, changes[topic]) for topic in sorted(changes) if changes[topic]]
    for part in batches(wanted, _CHANGES_AT_ONCE, weight=lambda item: len(item[1])):
        seconds = max(deadline - time.monotonic(), 0.1)
        futures: dict[str, Future[Any]] = {
            resource.name: future
            for resource, future in calls.client.incremental_alter_configs(
                [_resource(topic, entries) for topic, entries in part],
                validate_only=validate_only,
                request_timeout=seconds,
            ).items()
        }
        for topic, future in futures.items():
            where, needs = Where(cluster=cluster, topic=topic), Grant.on_topic(Operation.ALTER_CONFIGS, topic)
            outcome[topic] = calls.wait(future, seconds, "change the configs of a topic", where, needs)
    raise_if_unreachable(outcome.values())
    return outcome


def _resource(topic: str, entries: Sequence[ConfigChange]) -> ConfigResource:
    operations = {ConfigOperation.SET: AlterConfigOpType.SET, ConfigOperation.DELETE: AlterConfigOpType.DELETE}
    return ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            # The C code requires a text even if it ignores it.
            NativeEntry(entry.name, entry.value or "", incremental_operation=operations[entry.operation])
            for entry in entries
        ],
    )
