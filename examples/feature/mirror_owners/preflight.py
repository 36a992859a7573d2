"""A line in the log of Airflow's task `preflight`."""

from __future__ import annotations

from mirror_lib.config.model import FlowConfig
from mirror_owners.manifest import UNKNOWN


def check_flow(flow: FlowConfig) -> tuple[str, ...]:
    """Say who owns the topics without an owner in their names."""
    return (f"Topics without a dot in their names belong to {UNKNOWN.of(flow)}.",)
