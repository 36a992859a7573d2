"""The last chapter: a run is at work when the ledger is stored, with its flow's lock and its share of two limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.ledger.rows import RateSide
from mirror_lib.ledger.tables.rate_claims import RateAsk
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.stored_formats.scene import Scene
from tests.support.flows import copy_here
from tests.support.kafka import create_topic, produce, records

SOURCE, TARGET = "busy", "store"
FLOW = f"{SOURCE}->{TARGET}"
TRIGGER = "airflow mirror__busy__store scheduled__2026-11-25T10:00:00+00:00"
#: So long that the lock is held whenever the ledger is read again.
_LEASE_SECONDS = 1e10
_READ_LIMIT, _WRITE_LIMIT, _OWN_LIMIT = 8_000_000, 6_000_000, 2_000_000
_SETTINGS = {
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "busy.mirror.rate.limit.read.bytes": str(_READ_LIMIT),
    "store.mirror.rate.limit.write.bytes": str(_WRITE_LIMIT),
    "mirror.rate.limit.bytes": str(_OWN_LIMIT),
    "mirror.run.lease.seconds": f"{_LEASE_SECONDS:.0f}",
}
#: A flow that wants as much as it can get of the same clusters.
_OTHER_FLOW = "busy->annex"


def play(scene: Scene, store: Callable[[], None]) -> None:
    """Run a flow that calls `store` when it has claimed its partitions and copied nothing yet."""
    flow = scene.flow(SOURCE, TARGET, "jobs", _SETTINGS)
    create_topic(scene.pair.source, "jobs")
    produce(scene.pair.source, "jobs", records(50))
    options = RunOptions(trigger=TRIGGER)
    _keep_facts(scene, options.run_id)

    def store_and_copy(job: CopyJob) -> list[PartitionResult]:
        store()
        return copy_here(job)

    with ExitStack() as other:
        other.enter_context(hold_lock(flow.ledger, flow=_OTHER_FLOW, run_id="other-run", lease_seconds=_LEASE_SECONDS))
        # The size of a round is always known here: only brokers that tell no sizes leave it open.
        flow.ledger.claim_rate(
            flow=_OTHER_FLOW, run_id="other-run", wanted=None, asks=[RateAsk(RateSide.READ, SOURCE, _READ_LIMIT)]
        )
        report = flow.run(runner=store_and_copy, run_id=options.run_id, trigger=TRIGGER)
        if report.errors or report.records != 50:
            raise RuntimeError(f"{report.records} records: {report.errors}")


def _keep_facts(scene: Scene, run_id: str) -> None:
    scene.expect_running(FLOW, run_id, TRIGGER)
    for flow, run in ((FLOW, run_id), (_OTHER_FLOW, "other-run")):
        scene.facts.add("locks", flow=flow, run_id=run, lease_seconds=_LEASE_SECONDS, host="mirror-1")
    # The other flow was first and has all of it. A short round wants a MiB, and gets a tenth of that until the other
    # flow gives some back.
    wanted, granted = 1024 * 1024, 1024 * 1024 // 10
    _keep_claim(scene, _OTHER_FLOW, "read", SOURCE, None, _READ_LIMIT)
    _keep_claim(scene, FLOW, "read", SOURCE, wanted, granted)
    _keep_claim(scene, FLOW, "write", TARGET, wanted, granted)


def _keep_claim(scene: Scene, flow: str, side: str, cluster: str, wanted: int | None, granted: int) -> None:
    scene.facts.add("rate_claims", flow=flow, side=side, cluster=cluster, wanted=wanted, bytes_per_second=granted)
