"""Admin clients for both clusters of a flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.groups import GroupAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.leader_wait import LeaderWait
from mirror_lib.config.model import ClientSettings, FlowConfig


@contextmanager
def flow_admins(flow: FlowConfig) -> Iterator[tuple[ClusterAdmin, ClusterAdmin]]:
    """Source and target, with `admin.timeout.ms` for each call."""
    with source_admin(flow) as source, target_admin(flow) as target:
        yield source, target


@contextmanager
def group_admins(flow: FlowConfig) -> Iterator[tuple[GroupAdmin, GroupAdmin]]:
    """The consumer groups of source and target, with `admin.timeout.ms` for each call and one wait for leaders."""
    timeout, wait = flow.admin_timeout_ms / 1000, LeaderWait()
    with (
        GroupAdmin(Connection.from_settings(flow.clients.source_admin), timeout, wait) as source,
        GroupAdmin(Connection.from_settings(flow.clients.target_admin), timeout, wait) as target,
    ):
        yield source, target


def source_admin(flow: FlowConfig, seconds: float | None = None) -> ClusterAdmin:
    """The source's admin client; use as a context manager.

    Args:
        seconds: for each call; by default `admin.timeout.ms`.
    """
    return _admin(flow, flow.clients.source_admin, seconds)


def target_admin(flow: FlowConfig, seconds: float | None = None) -> ClusterAdmin:
    """The target's admin client; as `source_admin`."""
    return _admin(flow, flow.clients.target_admin, seconds)


def _admin(flow: FlowConfig, client: ClientSettings, seconds: float | None) -> ClusterAdmin:
    timeout = flow.admin_timeout_ms / 1000 if seconds is None else seconds
    return ClusterAdmin(Connection.from_settings(client), timeout)
