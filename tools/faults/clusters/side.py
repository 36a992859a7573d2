"""One of the two clusters: its brokers, which can be killed, and the proxies that the flow connects through."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.ports import LOOPBACK
from tools.faults.clusters.topics import Topics
from tools.testbed.proxy import KafkaProxy

#: The listener of the flow, behind the proxy.
_FLOW_LISTENER = "FLOW"
_LISTENERS = {"PLAINTEXT": "PLAINTEXT", _FLOW_LISTENER: "PLAINTEXT"}
_HEAP_MEGABYTES = 320
#: Brokers notice a dead broker within seconds, delete files at once, and keep records of any age.
_OVERRIDES = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "unclean.leader.election.enable": "false",
    "log.segment.delete.delay.ms": "1000",
    "log.retention.ms": "-1",
}


class Side:
    """A cluster; the campaign's own clients connect directly, the flow through proxies."""

    def __init__(self, name: str, directory: Path, *, brokers: int, overrides: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.brokers = brokers
        self._cluster = KafkaCluster(
            name,
            directory=directory,
            brokers=brokers,
            overrides={**_OVERRIDES, **(overrides or {})},
            listeners=_LISTENERS,
            proxied=[_FLOW_LISTENER],
            heap_megabytes=_HEAP_MEGABYTES,
        )
        self.proxy = KafkaProxy.in_front_of(self._cluster, _FLOW_LISTENER)

    @cached_property
    def topics(self) -> Topics:
        """The campaign's own access to the cluster."""
        return Topics(self._cluster.bootstrap_servers)

    @property
    def flow_bootstrap(self) -> str:
        """Bootstrap servers of the flow."""
        return self._cluster.bootstrap_servers_of(_FLOW_LISTENER)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The node ids of all brokers, running or not."""
        return self._cluster.node_ids

    def start(self) -> None:
        """Start brokers and proxies.

        Raises:
            BrokerStartError: a broker does not come up.
        """
        self._cluster.start()
        self.proxy.start()

    def stop(self) -> None:
        """Stop everything; nothing of it is needed again."""
        self.proxy.stop()
        self._cluster.kill_all()

    def keep_disks(self, copies: Path) -> None:
        """Stop all brokers, copy their disks into a folder, and start them again."""
        self._cluster.stop()
        for node, disk in zip(self.node_ids, self._cluster.data_folders, strict=True):
            shutil.copytree(disk, copies / str(node))
        self._start_again()

    def restore(self, copies: Path) -> None:
        """Put copies of the disks of all brokers in their place."""
        self._cluster.kill_all()
        for node, disk in zip(self.node_ids, self._cluster.data_folders, strict=True):
            shutil.rmtree(disk)
            shutil.copytree(copies / str(node), disk)
        self._start_again()

    def _start_again(self) -> None:
        self._cluster.start()
        self.topics.renew()

    def kill(self, node: int) -> None:
        """SIGKILL one broker."""
        self._cluster.kill(node)

    def restart(self, nodes: Sequence[int]) -> None:
        """Start killed brokers again and wait until they are members of the cluster."""
        # In parallel: after a power cut none of them is ready before the others.
        with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
            list(pool.map(self._cluster.restart, nodes))

    def listening(self, nodes: Sequence[int]) -> bool:
        """Return True if all these brokers accept connections."""
        return all(_listens(self._cluster.ports_of(node).listeners[_FLOW_LISTENER]) for node in nodes)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((LOOPBACK, port)) == 0
