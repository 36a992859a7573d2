"""A flow while an operator's decision is applied: no run may copy meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.copy.run_lock import RunLease, hold_lock
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters


class LockedFlow(NamedTuple):
    """Its ledger and clusters, and the lock: `check` it before anything is written."""

    ledger: Ledger
    lease: RunLease
    clusters: FlowClusters
    #: Of the decision.
    run_id: str


@contextmanager
def locked_flow(file: MirrorConfig, settings: FlowConfig) -> Iterator[LockedFlow]:
    """Hold the run lock of a flow.

    Raises:
        MirrorError: a run of the flow copies, or the ledger cannot be used.
    """
    run_id = f"decision-{uuid.uuid4()}"
    with (
        open_ledger(file) as ledger,
        hold_lock(ledger, flow=str(settings.flow), run_id=run_id, lease_seconds=settings.run_lease_seconds) as lease,
        FlowClusters.connect(settings) as clusters,
    ):
        yield LockedFlow(ledger, lease, clusters, run_id)
