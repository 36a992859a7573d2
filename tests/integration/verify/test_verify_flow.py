"""Verification of flows that were copied for real: what is equal, and hidden corruption of the target."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.topics.positions import Position, PositionState
from mirror_lib.relay.planning.facts import FlowClusters
from mirror_lib.verify.findings import DifferenceKind, Verdict
from mirror_lib.verify.model import Budget, VerifyMode
from mirror_lib.verify.raw.local import run_locally
from mirror_lib.verify.raw.task import verify_bin
from mirror_lib.verify.report import VerifyReport
from mirror_lib.verify.run import VerifyOptions, job_of, plan_flow_verification, verify_flow
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.interruptions import interrupted, killed_after
from tests.support.kafka import (
    Record,
    consume,
    create_topic,
    delete_records,
    produce,
    records,
    set_config,
    transaction,
    watermarks,
)
from tests.support.verifying import tamper, verify

_Change = Callable[[list[Record]], Sequence[Record]]


def _only(report: VerifyReport) -> tuple[DifferenceKind, int | None, int | None, tuple[str, ...]]:
    ((difference,),) = (verdict.differences for verdict in report.verdicts)
    assert report.difference_count == 1
    assert report.exit_code == 3
    return difference.kind, difference.source_offset, difference.target_offset, difference.what


def test_a_copy_is_equal_and_untouched_batches_are_not_decoded(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=3)
    for partition, codec in enumerate(("none", "lz4", "zstd")):
        produce(
            kafka_pair.source,
            topic_name,
            records(2_000, size=2_000, partition=partition),
            compression_type=codec,
            batch_size=100_000,
            linger_ms=50,
        )
    # Small batches, which are gathered into larger ones.
    produce(kafka_pair.source, topic_name, records(300, start=2_000), linger_ms=0, batch_num_messages=7)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    assert flow.run().records == 6_300

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    assert report.records == 6_300
    # The compressed batches of the others are so small that they were gathered.
    uncompressed = report.verdicts[0]
    assert 1_500 < sum(each.records_undecoded for each in uncompressed.outcomes) < 2_300
    again = verify(flow)
    assert [each.digest for each in again.verdicts] == [each.digest for each in report.verdicts]
    assert all(each.digest for each in report.verdicts)


def test_recent_looks_only_at_what_came_since(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(500))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()
    assert verify(flow, mode=VerifyMode.RECENT).records == 500
    (first,) = flow.ledger.verified_up_to("A->B")
    assert first.source_next == 500

    assert verify(flow, mode=VerifyMode.RECENT).idle == 1
    (still,) = flow.ledger.verified_up_to("A->B")
    assert still.source_next == 500
    assert still.verified_at > first.verified_at
    produce(kafka_pair.source, topic_name, records(70, start=500))
    flow.run()
    report = verify(flow, mode=VerifyMode.RECENT)

    assert report.exit_code == 0
    assert report.records == 70
    assert [row.source_next for row in flow.ledger.verified_up_to("A->B")] == [570]


def test_a_sample_says_how_sure_it_is(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10_000))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()

    report = verify(flow, mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=300_000), seed=7)

    assert report.exit_code == 0
    assert 0 < report.records < 10_000
    assert report.confidence is not None
    assert report.confidence.sampled == report.records
    assert report.confidence.population == 10_000
    same = verify(flow, mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=300_000), seed=7)
    assert [each.outcomes for each in same.verdicts] == [each.outcomes for each in report.verdicts]


def _altered(copy: list[Record]) -> list[Record]:
    value = copy[1_234].value or b""
    return [*copy[:1_234], replace(copy[1_234], value=value[:-1] + b"!"), *copy[1_235:]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_altered, (DifferenceKind.ALTERED, 1_234, 1_234, ("value",))),
        (
            lambda copy: [*copy[:7], replace(copy[7], headers=(("number", b"8"),)), *copy[8:]],
            (DifferenceKind.ALTERED, 7, 7, ("headers",)),
        ),
        (
            lambda copy: [*copy[:7], replace(copy[7], timestamp_ms=1_704_067_200_000), *copy[8:]],
            (DifferenceKind.ALTERED, 7, 7, ("timestamp",)),
        ),
        (lambda copy: copy[:500] + copy[501:], (DifferenceKind.MISSING, 500, None, ())),
        (lambda copy: copy[:501] + copy[500:], (DifferenceKind.EXTRA, None, 501, ())),
        (
            lambda copy: [*copy[:500], copy[501], copy[500], *copy[502:]],
            (DifferenceKind.REORDERED, 500, 500, ()),
        ),
    ],
    ids=["one byte", "a header", "a timestamp", "one missing", "one duplicated", "two swapped"],
)
def test_hidden_corruption_is_found(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, change: _Change, expected: tuple[object, ...]
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(3_000))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()
    assert verify(flow).exit_code == 0

    tamper(kafka_pair, f"A.{topic_name}", change)

    assert _only(verify(flow)) == expected
    assert flow.ledger.verified_up_to("A->B") == ()


def test_what_somebody_else_wrote_behind_the_copy_is_extra(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(100))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()

    produce(kafka_pair.target, f"A.{topic_name}", [Record(value=b"of another program")])

    assert _only(verify(flow)) == (DifferenceKind.EXTRA, None, 100, ())


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_are_compared_as_the_flow_reads_them(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, isolation: str
) -> None:
    create_topic(kafka_pair.source, topic_name)
    for number in range(6):
        transaction(kafka_pair.source, topic_name, [b"%d-%d" % (number, n) for n in range(20)], commit=number % 3 != 1)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A.consumer.isolation.level": isolation})
    flow.run()

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    assert report.records == (80 if isolation == "read_committed" else 120)


def test_compaction_on_both_sides_is_no_difference(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "min.compaction.lag.ms": "0",
    }
    create_topic(kafka_pair.source, topic_name, configs=configs)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    for number in range(5):
        written = [Record(key=b"%d" % (n % 5), value=b"%d-%d" % (number, n)) for n in range(50)]
        produce(kafka_pair.source, topic_name, written, compression_type="lz4")
        flow.run()
        time.sleep(0.2)
    for name, value in configs.items():
        set_config(kafka_pair.target, f"A.{topic_name}", name, value)
    deadline = time.monotonic() + 60
    while len(consume(kafka_pair.target, f"A.{topic_name}")) >= 250:
        assert time.monotonic() < deadline, "the broker did not compact the topic"
        time.sleep(0.5)

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    (verdict,) = report.verdicts
    assert verdict.compacted_records > 0
    assert verdict.records > 0


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_retention_has_removed_on_one_side_is_expired(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, side: str
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(1_000))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()
    if side == "source":
        delete_records(kafka_pair.source, topic_name, before=400)
    else:
        delete_records(kafka_pair.target, f"A.{topic_name}", before=400)

    report = verify(flow)

    assert report.exit_code == 0
    (verdict,) = report.verdicts
    assert (verdict.records, verdict.expired_records, verdict.source_first) == (600, 400, 400)


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_retention_removes_after_the_plan_was_made_is_expired(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path, side: str
) -> None:
    # A broker goes on giving deleted records out of a segment that holds others; these are years apart, so they have
    # segments of their own.
    for cluster, name in ((kafka_pair.source, topic_name), (kafka_pair.target, f"A.{topic_name}")):
        create_topic(cluster, name, configs={"segment.ms": "60000"})
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    for start in (0, 400):
        produce(kafka_pair.source, topic_name, records(600 if start else 400, start=start))
        flow.run()
    job = job_of(flow.config, plan_flow_verification(flow.config, flow.ledger, VerifyOptions()))
    cluster, name = (kafka_pair.source, topic_name) if side == "source" else (kafka_pair.target, f"A.{topic_name}")
    delete_records(cluster, name, before=400)

    deadline = time.monotonic() + 60
    while not (verdict := verify_bin(job, 0)[0]).expired_records:
        assert time.monotonic() < deadline, "the broker did not delete the segment"
        time.sleep(0.5)

    assert verdict.verdict is Verdict.EQUAL, verdict
    assert (verdict.records, verdict.expired_records) == (600, 400)


def test_processes_of_their_own_find_the_same(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    for partition in range(2):
        produce(kafka_pair.source, topic_name, records(300, partition=partition))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()
    told: list[int] = []

    report = verify_flow(
        flow.config,
        ledger=flow.ledger,
        make_runner=lambda _: run_locally(2, told.append),
        options=VerifyOptions(tasks_max=2),
    )

    assert report.exit_code == 0
    assert report.records == 600
    assert sum(told) == report.source_bytes
    assert [each.digest for each in report.verdicts] == [each.digest for each in verify(flow).verdicts]


def test_log_append_times_of_the_target_are_said_not_to_be_compared(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    create_topic(kafka_pair.target, f"A.{topic_name}", configs={"message.timestamp.type": "LogAppendTime"})
    produce(kafka_pair.source, topic_name, records(500))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()

    report = verify(flow)

    (verdict,) = report.verdicts
    assert verdict.verdict is Verdict.EQUAL
    assert verdict.records == 500
    assert not verdict.timestamps_compared


def test_where_there_was_nothing_to_copy_there_is_nothing_to_compare(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    # An empty partition; one with nothing but aborted records; one whose target has the marker of a fence beside.
    create_topic(kafka_pair.source, topic_name, partitions=3)
    for partition in (1, 2):
        transaction(kafka_pair.source, topic_name, [b"taken back"], partition=partition, commit=False)
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"A.consumer.isolation.level": "read_committed"})
    flow.run()
    transaction(kafka_pair.source, topic_name, [b"taken back too"], partition=2, commit=False)
    interrupted(flow, killed_after())
    assert flow.run().errors == ()
    assert watermarks(kafka_pair.target, f"A.{topic_name}", 2) == (0, 1)

    report = verify(flow)

    assert (report.exit_code, report.records) == (0, 0), report.to_dict()
    assert report.sentence.startswith("Nothing to compare")


def test_a_partition_that_was_never_copied_and_holds_records_is_not_equal(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.sync_topics()
    # No run has copied it, but a position says that it is done.
    done = Position(topic_name, 0, 9, 0, PositionState.CLOSED)
    with FlowClusters.connect(flow.config) as clusters:
        clusters.positions.write([done])

    report = verify(flow)

    assert report.exit_code == 1
    assert [verdict.reason for verdict in report.verdicts] == ["no-map"]


def test_records_that_a_first_start_has_passed_over_are_counted_and_hold_nothing_up(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name, partitions=2)
    for partition in (0, 1):
        produce(kafka_pair.source, topic_name, records(10, partition=partition))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"mirror.first.start": "latest"})
    flow.run()
    produce(kafka_pair.source, topic_name, records(5, start=10, partition=1))
    assert flow.run().records == 5

    report = verify(flow)

    assert (report.exit_code, report.records) == (0, 5), report.to_dict()
    assert [verdict.offsets_before_map for verdict in report.verdicts] == [10, 10]


def test_a_position_that_skips_records_proves_nothing_where_a_first_start_would_have_copied_them(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings={"mirror.first.start": "latest"})
    flow.run()
    earliest = pair_flow(tmp_path, kafka_pair, topics=topic_name)

    assert [verdict.reason for verdict in verify(earliest).verdicts] == ["no-map"]


def test_without_a_map_nothing_can_be_verified(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    create_topic(kafka_pair.target, f"A.{topic_name}")
    for cluster, name in ((kafka_pair.source, topic_name), (kafka_pair.target, f"A.{topic_name}")):
        produce(cluster, name, records(10))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.sync_internal_topics()

    report = verify(flow)

    assert report.exit_code == 1
    (verdict,) = report.verdicts
    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "no-map")


def test_a_budget_of_bytes_ends_early_and_says_so(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(5_000, size=1_000))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()

    report = verify(flow, budget=Budget(max_bytes=1_000_000))

    assert report.exit_code == 0
    assert 0 < report.records < 5_000
    assert [row.source_next for row in flow.ledger.verified_up_to("A->B")] == [report.verdicts[0].source_next]


def test_the_command_tells_what_differs_and_where(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(200))
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name)
    flow.run()
    arguments = ["verify", "--config", str(flow.path), "--flow", "A->B"]

    equal = CliRunner().invoke(app, arguments)
    tamper(kafka_pair, f"A.{topic_name}", lambda copy: copy[:50] + copy[51:])
    page = tmp_path / "report.html"
    different = CliRunner().invoke(app, [*arguments, "--json", "--html", str(page)])

    assert equal.exit_code == 0, equal.output
    assert "EQUAL: 200 records in 1 partition." in equal.output
    assert different.exit_code == 3
    document = json.loads(different.stdout)
    assert document["partitions"][0]["differences"][0]["kind"] == "missing"
    assert document["partitions"][0]["differences"][0]["source_offset"] == 50
    assert topic_name in page.read_text()
    assert watermarks(kafka_pair.target, f"A.{topic_name}")[1] == 199


def test_what_a_policy_has_left_out_is_no_difference(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(kafka_pair.source, topic_name)
    create_topic(kafka_pair.target, f"A.{topic_name}", configs={"max.message.bytes": "20000"})
    for part in (records(50), records(1, start=50, size=60_000), records(49, start=51)):
        produce(kafka_pair.source, topic_name, part)
    flow = pair_flow(
        tmp_path,
        kafka_pair,
        topics=topic_name,
        settings={"mirror.poison.policy": "skip", "sync.topic.configs.enabled": "false"},
    )
    assert flow.run().left_out == 1

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    (verdict,) = report.verdicts
    assert (verdict.records, verdict.left_out) == (99, 1)


def test_the_sources_of_a_merge_are_compared_each_by_itself(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    first, second, merged = f"{topic_name}-1", f"{topic_name}-2", f"{topic_name}-merged"
    for name in (first, second):
        create_topic(kafka_pair.source, name)
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}", "mirror.topics.merge.enabled": "true"}
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{first}, {second}", settings=settings)
    for start in (0, 1_000):
        produce(kafka_pair.source, first, records(60, start=start))
        produce(kafka_pair.source, second, records(40, start=start + 60))
        flow.run()

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    assert [verdict.records for verdict in report.verdicts] == [120, 80]
