"""Features that a cluster's version of Kafka lacks for a flow, reported once instead of by later errors.

Brokers do not report their version, but the supported versions of requests (KIP-35).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.groups import BATCH_OFFSET_FETCH, OFFSET_FETCH
from mirror_lib.cluster.raw.client import RawClient

_METADATA, _METADATA_WITH_TOPIC_IDS = 3, 10
#: A version that Kafka 4.0 dropped (KIP-896).
_FETCH, _OLD_FETCH = 1, 3


@dataclass(frozen=True, slots=True)
class VersionLimit:
    """A feature of Kafka since a version that is newer than the cluster."""

    cluster: str
    since: str
    what: str

    def __str__(self) -> str:
        return f"Cluster {self.cluster} is older than Kafka {self.since}: {self.what}."


@dataclass(frozen=True, slots=True)
class _Sign:
    """How an older broker is recognized, and the consequence for source and target."""

    since: str
    api_key: int
    version: int
    #: True if the broker is older when it supports that version; false if it is older when it does not.
    supported: bool
    of_source: str | None
    of_target: str | None


_SLOW_GROUPS = "offsets of groups are read one group at a time, which takes longer with thousands of groups"
_SIGNS = (
    _Sign(
        since="2.8",
        api_key=_METADATA,
        version=_METADATA_WITH_TOPIC_IDS,
        supported=False,
        of_source="topics have no ids (KIP-516), so a topic that was deleted and created again is detected only by its "
        "offsets",
        of_target=None,
    ),
    _Sign("3.0", OFFSET_FETCH, BATCH_OFFSET_FETCH, supported=False, of_source=_SLOW_GROUPS, of_target=_SLOW_GROUPS),
    _Sign(
        since="4.0",
        api_key=_FETCH,
        version=_OLD_FETCH,
        supported=True,
        of_source=None,
        of_target="groups of the new protocol (KIP-848) become classic groups there, so their consumers need "
        "group.protocol=classic",
    ),
)


def version_limits(connection: Connection, *, source: bool) -> tuple[VersionLimit, ...]:
    """The features that a cluster lacks; with mixed versions the oldest broker counts.

    Args:
        connection: to the cluster.
        source: true if the cluster is the source, false for the target.

    Raises:
        BrokerUnreachableError: a broker does not respond.
    """
    return asyncio.run(_limits(connection, source=source))


async def _limits(connection: Connection, *, source: bool) -> tuple[VersionLimit, ...]:
    async with RawClient(connection) as client:
        found = []
        for sign in _SIGNS:
            what = sign.of_source if source else sign.of_target
            if what is not None and await _shows(client, sign):
                found.append(VersionLimit(client.cluster, sign.since, what))
        return tuple(found)


async def _shows(client: Any, sign: _Sign) -> bool:
    supported = [await client.speaks(node, sign.api_key, sign.version) for node in client.brokers()]
    return any(each is sign.supported for each in supported)
