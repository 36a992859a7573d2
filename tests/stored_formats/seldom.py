"""Chapter of rows that the product seldom writes: by real ways where there are cheap ones, else by the ledger's API."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.config.loader import load
from mirror_lib.copy.job.report import error_report
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.observed_rows import FlowObservationRow, GroupObservationRow, PartitionObservationRow
from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.ledger.rows import GapRow, RoundRow
from tests.stored_formats.control import FLOW as COPIED_FLOW
from tests.stored_formats.control import DagRun
from tests.stored_formats.copies import interrupt, send
from tests.stored_formats.scene import Scene
from tests.support.flows import Flow
from tests.support.interruptions import killed_after
from tests.support.kafka import create_topic, delete_topic, produce, records, transaction
from tests.support.verifying import verify

#: Between brokers that say neither sizes nor ids of topics; two of Kafka 4 cannot play them.
FLOW = "ancient->annex"
UNFENCED_SOURCE = "plain"
_HEARTBEATS = {"emit.heartbeats.enabled": "false", "emit.checkpoints.enabled": "false"}
_DAY_MS = 86_400_000


def play(scene: Scene, flow: Flow) -> None:
    """Everything of this chapter."""
    _check_late_heartbeats(scene)
    _lose_target_topic(scene, flow)
    _copy_without_fencing(scene)
    _load_broken_file(scene)
    _observe_old_brokers(scene, flow)
    _copy_from_old_brokers(scene, flow)


def _check_late_heartbeats(scene: Scene) -> None:
    """A heartbeat of ten days ago, a topic without any, and a step that is switched off."""
    quiet = scene.flow("quiet", "loud", "nothing", _HEARTBEATS)
    create_topic(scene.pair.target, "quiet.heartbeats")
    heartbeat = Heartbeat("loud", "quiet", int(time.time() * 1000) - 10 * _DAY_MS)
    send(scene.pair.target, "quiet.heartbeats", 0, heartbeat.key(), heartbeat.value())
    scene.call_for_flow(quiet, "heartbeat", "check", exit_code=1, keep="heartbeat-check.json")
    scene.facts.add("heartbeats", flow="quiet->loud", pair="quiet->loud", verdict="stale", emitted=True)
    mute = scene.flow("mute", "loud", "nothing", _HEARTBEATS)
    create_topic(scene.pair.target, "mute.heartbeats")
    scene.call_for_flow(mute, "heartbeat", "check", exit_code=1)
    scene.facts.add("heartbeats", flow="mute->loud", pair="mute->loud", verdict="missing", emitted=False)
    from mirror_lib.airflow.flow.sync_tasks import translate_offsets

    DagRun(scene, quiet).do(translate_offsets)
    scene.facts.add("skipped_steps", flow="quiet->loud", step="translate_offsets", names="emit.checkpoints.enabled")


def _lose_target_topic(scene: Scene, flow: Flow) -> None:
    """What cannot be compared."""
    delete_topic(scene.pair.target, "east.carts")
    report = verify(flow, topics=("carts",))
    scene.facts.add(
        "verifications",
        id=report.verification_id,
        flow=COPIED_FLOW,
        topic="carts",
        partition=0,
        mode="full",
        verdict="unverifiable",
        reason="topic-missing",
        records=0,
    )


def _copy_without_fencing(scene: Scene) -> None:
    """To a target that refuses transactional ids: positions name no writer."""
    settings = {**_HEARTBEATS, "heartbeats.replication.enabled": "false", "mirror.fencing": "none"}
    flow = scene.flow(UNFENCED_SOURCE, "bare", "notes", settings)
    create_topic(scene.pair.source, "notes")
    produce(scene.pair.source, "notes", records(12))
    transaction(scene.pair.source, "notes", [b"taken back"] * 2, commit=False)
    scene.run(flow, 14)
    scene.expect_position(flow, "notes", target="plain.notes")
    produce(scene.pair.source, "notes", records(5, start=12))
    interrupt(scene, flow, "notes", killed_after())


def _load_broken_file(scene: Scene) -> None:
    """A job that fails as a whole reports the error and nothing else."""
    file = scene.folder / "broken.properties"
    file.write_text("clusters = x, y\nx->y.enabled = true\nmirror.run.max.second = 5\n", encoding="utf-8")
    try:
        load(file)
    except MirrorError as error:
        report = error_report(error)
    else:
        raise RuntimeError(f"{file} has no problem")
    # The folder of this story has no meaning for readers.
    scene.outputs["job-report-error.json"] = json.loads(json.dumps(report).replace(f"{scene.folder}/", ""))


def _observe_old_brokers(scene: Scene, flow: Flow) -> None:
    now = datetime.now(UTC)
    partition = PartitionObservationRow(
        flow=FLOW, topic="events", partition=0, target_topic="ancient.events", observed_at=now, outlook="unknown"
    )
    flow.ledger.observations.save_flow(
        FlowObservationRow(
            flow=FLOW, observed_at=now, partitions=1, lagging=0, stalled=0, records_behind=0, outlook="unknown"
        ),
        [partition],
    )
    # A group that its coordinator does not describe.
    flow.ledger.observations.save_groups(
        FLOW,
        [
            GroupObservationRow(
                flow=FLOW,
                group="readers",
                topic="events",
                partition=0,
                target_topic="ancient.events",
                observed_at=now,
                reason="unreadable",
                what="cluster ancient refused to describe group readers.",
            )
        ],
    )
    scene.facts.add("unknown_observations", flow=FLOW, topic="events", partition=0, group="readers")


def _copy_from_old_brokers(scene: Scene, flow: Flow) -> None:
    ledger = flow.ledger
    run_id = "0d5a9f2e-old-brokers"
    ledger.start_run(run_id=run_id, flow=FLOW, trigger="cli")
    ledger.save_round(
        RoundRow(run_id=run_id, flow=FLOW, number=1, began_at=datetime.now(UTC), planning_seconds=0.25, lag_records=9)
    )
    ledger.finish_run(run_id, state="succeeded", rounds=1, planned_partitions=0, records=0, bytes=0)
    scene.facts.add("runs", id=run_id, flow=FLOW, state="succeeded", records=0, trigger="cli", reason=None)
    ledger.save_positions([PositionRow(flow=FLOW, topic="events", partition=0, offset=8, state="open")])
    scene.facts.add("unknown_positions", flow=FLOW, topic="events", partition=0, offset=8, state="open")
    ledger.record_gap(
        GapRow(
            id="6f3ad0de-0000-4000-8000-000000000001",
            flow=FLOW,
            topic="events",
            partition=0,
            cause="retention-gap",
            first_offset=9,
            next_offset=12,
            detail="records 9 to 11 were deleted at the source before they were copied.",
            found_at=datetime.now(UTC),
        )
    )
    scene.facts.add(
        "gaps",
        flow=FLOW,
        topic="events",
        partition=0,
        cause="retention-gap",
        first_offset=9,
        next_offset=12,
        state="open",
        records=None,
        note=None,
    )
    ledger.audits.note(by="marta", action="upgrade", subject="brokers of cluster ancient", detail={"to": "4.3"})
    scene.facts.add("audits", flow=None, action="upgrade", subject="brokers of cluster ancient", by="marta")
