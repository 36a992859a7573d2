"""Chapter of plain copies: runs, interruptions, take-overs, gaps, a quarantine, positions set by hand, backfills."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Producer

from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import PositionKeys, partition_for
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.topology.names import TopicPartition
from tests.stored_formats.scene import Scene
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import DriverKilledError, killed_after, up_to
from tests.support.kafka import (
    Record,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    records,
    set_config,
    transaction,
)

SOURCE, TARGET = "east", "west"
FLOW = f"{SOURCE}->{TARGET}"
TOPICS = (
    "orders",
    "payments",
    "parcels",
    "letters",
    "refunds",
    "shipments",
    "returns",
    "stock",
    "archive",
    "legacy",
    "prices",
    "carts",
    "invoices",
    "coupons",
    "heartbeats",
)
SCHEDULED = "airflow mirror__east__west scheduled__2026-11-25T08:00:00+00:00"
_HOUR_MS = 3_600_000
#: Records of `payments` in each transaction; every second one is aborted.
_IN_TRANSACTION, _TRANSACTIONS = 8, 6
_SETTINGS = {
    "east.consumer.isolation.level": "read_committed",
    "east->west.tasks.max": "2",
    "sync.group.offsets.enabled": "true",
    "mirror.acls.stage.writes.enabled": "true",
    "mirror.poison.policy": "quarantine",
    "mirror.schedule": "5m",
}


def open_flow(scene: Scene) -> Flow:
    """The flow of this chapter."""
    return scene.flow(SOURCE, TARGET, ", ".join(TOPICS), _SETTINGS)


def play(scene: Scene, flow: Flow) -> None:
    """Everything of this chapter, in the order in which it would happen."""
    scene.call(flow, "heartbeat", "emit", keep="heartbeat-emit.json")
    _copy_orders(scene, flow)
    _copy_transactions(scene, flow)
    _quarantine_records(scene, flow)
    _quarantine_damaged_batch(scene, flow)
    _interrupt_and_take_over(scene, flow)
    _take_over_from_mirror_maker(scene, flow)
    _leave_gap_open(scene, flow)
    _accept_gap(scene, flow)
    _copy_recreated_topic_again(scene, flow)
    _stop_partition(scene, flow)
    _set_and_reset_positions(scene, flow)
    _backfill(scene, flow)


def _copy_orders(scene: Scene, flow: Flow) -> None:
    source = scene.pair.source
    create_topic(source, "orders", partitions=3)
    produce(source, "orders", [*records(40), *records(25, partition=1)], compression_type="zstd")
    # The heartbeat of the opposite pair is in the source and is copied, too.
    scene.run(flow, 40 + 25 + 1, trigger=SCHEDULED, keep="run-report.json")
    scene.outputs["plan-report.json"] = scene.call_for_flow(flow, "plan", exit_code=0)
    for part in range(3):
        produce(source, "orders", records(20, start=100 * (part + 1), partition=part))
        scene.run(flow, 20, topics=("orders",))
    for partition in range(3):
        scene.expect_map(FLOW, "orders", partition, target="east.orders")


def _copy_transactions(scene: Scene, flow: Flow) -> None:
    create_topic(scene.pair.source, "payments")
    for number in range(_TRANSACTIONS):
        values = [b"payment-%d-%d" % (number, each) for each in range(_IN_TRANSACTION)]
        transaction(scene.pair.source, "payments", values, commit=number % 2 == 0)
    scene.run(flow, _IN_TRANSACTION * _TRANSACTIONS // 2, topics=("payments",))
    scene.expect_position(flow, "payments", target="east.payments")
    scene.expect_map(FLOW, "payments", target="east.payments")


def _quarantine_records(scene: Scene, flow: Flow) -> None:
    """Records that are too large, too old, and so large that they take two quarantine records."""
    pair = scene.pair
    now = int(time.time() * 1000)
    create_topic(pair.source, "parcels")
    create_topic(
        pair.target,
        "east.parcels",
        configs={"max.message.bytes": "5000", "message.timestamp.before.max.ms": str(_HOUR_MS)},
    )
    small = [Record(value=b"parcel-%d" % number, key=b"p", timestamp_ms=now) for number in range(12)]
    large = Record(value=b"x" * 9_000, key=b"large", timestamp_ms=now)
    huge = Record(value=b"y" * 600_000, key=b"huge", timestamp_ms=now)
    old = Record(value=b"old", key=b"old", headers=(("since", b"2024"),), timestamp_ms=now - 3 * _HOUR_MS)
    for batch in ([*small[:5], large], small[5:6], [huge], small[6:8], [old], small[8:]):
        produce(pair.source, "parcels", batch)
    # The driver dies when all is copied: the open position says what was skipped, and the next run takes it over.
    interrupt(scene, flow, "parcels", killed_after())
    scene.run(flow, 0, topics=("parcels",), keep="run-report-quarantine.json")
    for offset, cause in ((5, "record-too-large"), (7, "record-too-large"), (10, "record-refused")):
        _gap(scene, "parcels", cause, offset, offset + 1, "accepted", records=1, decided_by="policy quarantine")
    for offset, payload, times, parts, cause in (
        (5, "x", 9_000, 1, "record-too-large"),
        (7, "y", 600_000, 2, "record-too-large"),
        (10, "old", 1, 1, "record-refused"),
    ):
        scene.facts.add(
            "quarantine",
            flow=FLOW,
            topic="parcels",
            partition=0,
            offset=offset,
            last=offset,
            unit="record",
            payload=payload,
            times=times,
            parts=parts,
            reason=cause,
        )
    scene.expect_position(flow, "parcels", target="east.parcels")
    scene.expect_map(FLOW, "parcels", target="east.parcels")


def _quarantine_damaged_batch(scene: Scene, flow: Flow) -> None:
    """A batch with a wrong checksum, as a failing disk leaves it: its number of records cannot be trusted."""
    source = scene.pair.source
    create_topic(source, "letters")
    produce(source, "letters", records(10))
    produce(source, "letters", [Record(value=b"to be damaged"), Record(value=b"with it")])
    produce(source, "letters", records(5, start=10))
    segments = [path for path in source.directory.rglob("*.log") if path.parent.name == "letters-0"]
    (segment,) = (path for path in segments if b"to be damaged" in path.read_bytes())
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(b"to be damaged"))
        file.write(b"T")
    interrupt(scene, flow, "letters", killed_after())
    scene.run(flow, 0, topics=("letters",))
    _gap(scene, "letters", "corrupt-batch", 10, 12, "accepted", records=None, decided_by="policy quarantine")
    scene.facts.add(
        "quarantine",
        flow=FLOW,
        topic="letters",
        partition=0,
        offset=10,
        last=11,
        unit="batch",
        payload="To be damaged",
        times=1,
        parts=1,
        reason="corrupt-batch",
    )
    scene.expect_position(flow, "letters", target="east.letters")
    scene.expect_map(FLOW, "letters", target="east.letters")


def _interrupt_and_take_over(scene: Scene, flow: Flow) -> None:
    create_topic(scene.pair.source, "refunds")
    produce(scene.pair.source, "refunds", records(30))
    interrupt(scene, flow, "refunds", killed_after(up_to(20)))
    scene.run(flow, 10, topics=("refunds",))
    produce(scene.pair.source, "refunds", records(10, start=30))
    interrupt(scene, flow, "refunds", killed_after(up_to(35)))
    scene.facts.add("open_positions", flow=FLOW, topic="refunds", partition=0, next_offset=30)


def _take_over_from_mirror_maker(scene: Scene, flow: Flow) -> None:
    """MirrorMaker 2's records by its formats, without a JVM: `tests/integration/interop` compares both."""
    source, target = scene.pair.source, scene.pair.target
    create_topic(source, "legacy")
    create_topic(target, "east.legacy")
    written = produce(source, "legacy", records(30))
    produce(target, "east.legacy", written[:20])
    _write_as_mirror_maker(scene, "legacy", 19)
    sync = OffsetSync("legacy", 0, 15, 15)
    send(source, "mm2-offset-syncs.west.internal", 0, sync.key(), sync.value())
    interrupt(scene, flow, "legacy", killed_after(up_to(25)))
    scene.run(flow, 5, topics=("legacy",))
    scene.expect_position(flow, "legacy", target="east.legacy")
    scene.expect_map(FLOW, "legacy", target="east.legacy", first=15)
    # The flow does not select this topic any more: its position is still as MirrorMaker 2 left it.
    _write_as_mirror_maker(scene, "retired", 41)
    scene.facts.add("mirror_maker_positions", flow=FLOW, topic="retired", partition=0, offset=41)


def _write_as_mirror_maker(scene: Scene, topic: str, offset: int) -> None:
    key = PositionKeys(SOURCE).encode(TopicPartition(topic, 0))
    place = partition_for(key, 5)
    send(scene.pair.target, f"mm2-offsets.{SOURCE}.internal", place, key, b'{"offset":%d}' % offset)


def send(cluster: KafkaCluster, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
    """Write one record as it is."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 3})
    producer.produce(topic, key=key, value=value, partition=partition)
    if producer.flush(30):
        raise RuntimeError(f"{topic}: the record was not acknowledged")


def _delete_uncopied_records(scene: Scene, flow: Flow, topic: str) -> None:
    """Ten copied records; ten more, of which retention takes five before they are copied."""
    create_topic(scene.pair.source, topic)
    produce(scene.pair.source, topic, records(10))
    scene.run(flow, 10, topics=(topic,))
    produce(scene.pair.source, topic, records(10, start=10))
    delete_records(scene.pair.source, topic, before=15)


def _leave_gap_open(scene: Scene, flow: Flow) -> None:
    _delete_uncopied_records(scene, flow, "shipments")
    produce(scene.pair.source, "orders", records(5, start=900))
    # One partition stalls, the other is copied.
    report = flow.run(topics=("shipments", "orders"))
    _check_errors(report.errors, "retention-gap")
    scene.outputs["run-report-gap.json"] = report.to_dict()
    scene.expect_run(flow, report.run_id, "partial", 5)
    _gap(scene, "shipments", "retention-gap", 10, 15, "open")


def _accept_gap(scene: Scene, flow: Flow) -> None:
    _delete_uncopied_records(scene, flow, "returns")
    _run_into_error(scene, flow, "returns", "retention-gap")
    scene.call_for_flow(
        flow, "gaps", "accept", "--topic", "returns", "--note", "only test data", "--yes", keep="gaps-accept.json"
    )
    _gap(scene, "returns", "retention-gap", 10, 15, "accepted", decided_by=scene.person, note="only test data")
    scene.run(flow, 5, topics=("returns",))
    scene.expect_position(flow, "returns", target="east.returns")
    scene.expect_map(FLOW, "returns", target="east.returns")


def _copy_recreated_topic_again(scene: Scene, flow: Flow) -> None:
    create_topic(scene.pair.source, "stock")
    produce(scene.pair.source, "stock", records(10))
    scene.run(flow, 10, topics=("stock",))
    delete_topic(scene.pair.source, "stock")
    create_topic(scene.pair.source, "stock")
    produce(scene.pair.source, "stock", records(12, start=50))
    _run_into_error(scene, flow, "stock", "source-recreated")
    scene.call_for_flow(flow, "gaps", "recopy", "--topic", "stock", "--yes")
    scene.facts.add("gaps", flow=FLOW, topic="stock", partition=0, cause="source-recreated", state="recopied")
    scene.run(flow, 12, topics=("stock",))
    scene.expect_position(flow, "stock", target="east.stock")
    scene.expect_map(FLOW, "stock", target="east.stock")


def _stop_partition(scene: Scene, flow: Flow) -> None:
    _delete_uncopied_records(scene, flow, "archive")
    _run_into_error(scene, flow, "archive", "retention-gap")
    scene.call_for_flow(flow, "gaps", "stop", "--topic", "archive", "--yes")
    _gap(scene, "archive", "retention-gap", 10, 15, "stopped", decided_by=scene.person)


def _set_and_reset_positions(scene: Scene, flow: Flow) -> None:
    for topic in ("prices", "carts"):
        create_topic(scene.pair.source, topic)
        produce(scene.pair.source, topic, records(10))
        scene.run(flow, 10, topics=(topic,))
    scene.call_for_flow(
        flow, "position", "set", "--topic", "carts", "--to", "4", "--note", "again", "--yes", keep="position-set.json"
    )
    scene.run(flow, 6, topics=("carts",))
    scene.expect_position(flow, "carts", target="east.carts")
    scene.call_for_flow(flow, "position", "reset", "--topic", "prices", "--yes")
    scene.facts.add("forgotten_positions", flow=FLOW, topic="prices", partition=0)


def _backfill(scene: Scene, flow: Flow) -> None:
    """Into another topic, into the flow's own topic, and one into the flow's own topic that was interrupted."""
    for topic in ("invoices", "coupons"):
        create_topic(scene.pair.source, topic)
        produce(scene.pair.source, topic, records(20))
        scene.run(flow, 20, topics=(topic,))
    _run_backfill(scene, flow, "invoices", "history", 10, 15, into_suffix=".history")
    scene.expect_map(f"{FLOW}#backfill-history", "invoices", target="east.invoices.history")
    _run_backfill(scene, flow, "invoices", "again", 0, 5)
    # The copies of the backfill are behind those of the flow.
    scene.expect_position(flow, "invoices", target="east.invoices")
    name = _prepare_backfill(scene, flow, "coupons", "half", 5, 15)
    with suppress(DriverKilledError):
        _copy_backfill(flow, name, killed_after(up_to(10)))
    scene.facts.add("marked_positions", flow=FLOW, topic="coupons", partition=0, backfill="half", offset=19)
    scene.facts.add("runs_of_flow", flow=f"{FLOW}#backfill-half", state="failed")


def _run_backfill(
    scene: Scene, flow: Flow, topic: str, name: str, first: int, following: int, into_suffix: str | None = None
) -> None:
    report = _copy_backfill(flow, _prepare_backfill(scene, flow, topic, name, first, following, into_suffix), copy_here)
    scene.outputs.setdefault("backfill-report.json", report)
    scene.facts.add("runs_of_flow", flow=f"{FLOW}#backfill-{name}", state="succeeded", records=following - first)


def _prepare_backfill(
    scene: Scene, flow: Flow, topic: str, name: str, first: int, following: int, into_suffix: str | None = None
) -> str:
    request = request_of(
        flow.config,
        [topic],
        f"offset {first}",
        f"offset {following}",
        into_suffix=into_suffix,
        into_same=into_suffix is None,
    )
    with FlowClusters.connect(flow.config) as clusters:
        prepare_backfill(flow.config, clusters, flow.ledger, request, name)
    scene.facts.add(
        "backfills", flow=FLOW, name=name, topic=topic, first=first, next=following, into_live=not into_suffix
    )
    return name


def _copy_backfill(flow: Flow, name: str, runner: Callable[[CopyJob], list[PartitionResult]]) -> dict[str, object]:
    report = run_backfill(
        flow.config, name, ledger=flow.ledger, make_runner=lambda: runner, options=RunOptions(), max_bytes=None
    )
    _check_errors(report.errors)
    return report.to_dict()


def interrupt(scene: Scene, flow: Flow, topic: str, runner: Callable[[CopyJob], list[PartitionResult]]) -> None:
    """A run whose driver dies between the copy and its positions."""
    options = RunOptions(topics=(topic,))
    try:
        flow.run(runner=runner, run_id=options.run_id, topics=options.topics)
    except DriverKilledError:
        scene.expect_run(flow, options.run_id, "failed", 0)
    else:
        raise RuntimeError(f"the run of {topic} was not interrupted")


def _run_into_error(scene: Scene, flow: Flow, topic: str, reason: str) -> None:
    report = flow.run(topics=(topic,))
    _check_errors(report.errors, reason)
    scene.expect_run(flow, report.run_id, "failed", 0, reason=reason)


def _check_errors(errors: tuple[MirrorError, ...], *reasons: str) -> None:
    if [error.reason for error in errors] != list(reasons):
        raise RuntimeError(f"expected {reasons}: {errors}")


def _gap(scene: Scene, topic: str, cause: str, first: int, following: int, state: str, **more: object) -> None:
    scene.facts.add(
        "gaps",
        flow=FLOW,
        topic=topic,
        partition=0,
        cause=cause,
        first_offset=first,
        next_offset=following,
        state=state,
        **more,
    )


def change_topic_config(scene: Scene) -> None:
    """Give the flow a topic config to carry over."""
    set_config(scene.pair.source, "carts", "retention.ms", "86400000")
