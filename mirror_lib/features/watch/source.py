"""Latest offsets of one source cluster, for all flows of a file that read from it, over one set of connections."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Self

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.raw.log_ends import latest_offsets, list_topics
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.config.topology import flow_topology
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)


def source_connection(flow: FlowConfig) -> Connection:
    """The connection to a flow's source. Flows with equal ones share it: several aliases may name one cluster.

    Raises:
        ConfigurationError: a setting is not valid.
    """
    return replace(Connection.from_settings(flow.clients.data_consumer), cluster="")


class SourceLog:
    """Finds the topics of flows and their latest offsets. Use inside one event loop.

    Requests for each poll: one to each leader, and a second one if some flows read committed records only. The topics
    are listed again if `find_topics` is called, and after an error of a partition.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._flows: dict[str, FlowConfig] = {}
        self._client: RawClient | None = None
        self._open = AsyncExitStack()
        self._topics: dict[str, frozenset[str]] = {}
        self._partitions: dict[str, tuple[TopicPartition, ...]] = {}
        self._leaders_changed = False

    async def __aenter__(self) -> Self:
        (self._client,) = await self._open.enter_async_context(open_clients(self._connection))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    @property
    def has_to_find_topics(self) -> bool:
        """True if an error of a partition calls for it: its leader has changed, or its topic was deleted."""
        return self._leaders_changed

    async def find_topics(self, flows: Mapping[str, FlowConfig]) -> None:
        """List the topics that each flow selects, and their partitions.

        Args:
            flows: by name; without the topics that cutovers have handed over.

        Raises:
            MirrorError: the cluster does not respond, or a flow's configuration is not valid.
        """
        client = self._connected()
        listed = await list_topics(client)
        found: dict[str, frozenset[str]] = {}
        for name, flow in flows.items():
            topology = flow_topology(flow)
            # Each run writes a heartbeat: it must not start the next one.
            found[name] = frozenset(
                topic
                for topic in listed
                if topology.replicates(topic) and not topology.policy.is_heartbeats_topic(topic)
            )
            if missing := sorted(self._topics.get(name, frozenset()) - found[name]):
                _log.info("flow %s: no longer watched for new records: %s", name, ", ".join(missing))
        selected = frozenset().union(*found.values())
        failed = await client.refresh_leaders(selected) if selected else {}
        self._flows, self._topics = dict(flows), found
        self._partitions = {
            name: tuple(
                TopicPartition(topic, number)
                for topic in sorted(topics - failed.keys())
                for number in range(client.partition_count(topic) or 0)
            )
            for name, topics in found.items()
        }
        self._leaders_changed = False

    async def latest(self) -> dict[str, dict[TopicPartition, int]]:
        """The latest offsets by flow; partitions that have no leader now are missing.

        Raises:
            MirrorError: a leader does not respond.
        """
        client = self._connected()
        ends: dict[str, dict[TopicPartition, int]] = {}
        for committed in (False, True):
            names = [
                name
                for name, flow in self._flows.items()
                if (flow.isolation_level is IsolationLevel.READ_COMMITTED) is committed
            ]
            # Flows with the same topics ask once.
            wanted = dict.fromkeys(each for name in names for each in self._partitions.get(name, ()))
            if wanted:
                found, errors = await latest_offsets(client, wanted, read_committed=committed)
                self._leaders_changed = self._leaders_changed or bool(errors)
            else:
                found = {}
            for name in names:
                ends[name] = {each: found[each] for each in self._partitions.get(name, ()) if each in found}
        return ends

    def _connected(self) -> RawClient:
        assert self._client is not None
        return self._client
