"""Verification of flows that were copied for real: what is equal, and hidden corruption of the target."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.features.verify.findings import DifferenceKind, Verdict
from mirror_lib.features.verify.model import Budget, VerifyMode
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.raw.task import verify_bin
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, job_of, plan_flow_verification
from mirror_lib.features.verify.tables import Verifications
from tests.support.kafka import (
    Record,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    records,
    set_config,
    watermarks,
)
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import changed, put_on_target, tamper, verify
from tests.support.waiting import wait_for

_Change = Callable[[list[Record]], Sequence[Record]]


def _only(report: VerifyReport) -> tuple[DifferenceKind, int | None, int | None, tuple[str, ...]]:
    ((difference,),) = (verdict.differences for verdict in report.verdicts)
    assert report.difference_count == 1
    assert report.exit_code == 3
    return difference.kind, difference.source_offset, difference.target_offset, difference.what


def test_a_copy_is_equal_and_untouched_batches_are_not_decoded(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=3)
    for partition, codec in enumerate(("none", "lz4", "zstd")):
        mirrored.produce(
            records(2_000, size=2_000, partition=partition), compression_type=codec, batch_size=100_000, linger_ms=50
        )
    # Small batches, which are gathered into larger ones.
    mirrored.produce(records(300, start=2_000), linger_ms=0, batch_num_messages=7)
    flow = mirrored.flow()
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


def test_recent_looks_only_at_what_came_since(mirrored: MirroredTopic) -> None:
    mirrored.create(records(500))
    flow = mirrored.flow()
    flow.run()
    assert verify(flow, mode=VerifyMode.RECENT).records == 500
    (first,) = Verifications(flow.ledger).verified_up_to("A->B")
    assert first.source_next == 500

    assert verify(flow, mode=VerifyMode.RECENT).idle == 1
    (still,) = Verifications(flow.ledger).verified_up_to("A->B")
    assert still.source_next == 500
    assert still.verified_at > first.verified_at
    mirrored.produce(records(70, start=500))
    flow.run()
    report = verify(flow, mode=VerifyMode.RECENT)

    assert report.exit_code == 0
    assert report.records == 70
    assert [row.source_next for row in Verifications(flow.ledger).verified_up_to("A->B")] == [570]


def test_a_sample_says_how_sure_it_is_and_a_budget_of_bytes_ends_early(mirrored: MirroredTopic) -> None:
    mirrored.create(records(5_000, size=1_000))
    flow = mirrored.flow()
    flow.run()

    sample, same = (verify(flow, mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=300_000), seed=7) for _ in range(2))
    begun = verify(flow, budget=Budget(max_bytes=1_000_000))

    assert sample.exit_code == 0
    assert 0 < sample.records < 5_000
    assert sample.confidence is not None
    assert (sample.confidence.sampled, sample.confidence.population) == (sample.records, 5_000)
    assert [each.outcomes for each in same.verdicts] == [each.outcomes for each in sample.verdicts]
    assert begun.exit_code == 0
    assert 0 < begun.records < 5_000
    assert [row.source_next for row in Verifications(flow.ledger).verified_up_to("A->B")] == [
        begun.verdicts[0].source_next
    ]


def _altered(copy: list[Record]) -> list[Record]:
    return changed(1_234, value=(copy[1_234].value or b"")[:-1] + b"!")(copy)


#: What becomes of the copy of 3,000 records, and what is told.
_CORRUPTIONS: dict[str, tuple[_Change, tuple[object, ...]]] = {
    "one byte": (_altered, (DifferenceKind.ALTERED, 1_234, 1_234, ("value",))),
    "a header": (changed(7, headers=(("number", b"8"),)), (DifferenceKind.ALTERED, 7, 7, ("headers",))),
    "a timestamp": (changed(7, timestamp_ms=1_704_067_200_000), (DifferenceKind.ALTERED, 7, 7, ("timestamp",))),
    "one missing": (lambda copy: copy[:500] + copy[501:], (DifferenceKind.MISSING, 500, None, ())),
    "one duplicated": (lambda copy: copy[:501] + copy[500:], (DifferenceKind.EXTRA, None, 501, ())),
    "two swapped": (
        lambda copy: [*copy[:500], copy[501], copy[500], *copy[502:]],
        (DifferenceKind.REORDERED, 500, 500, ()),
    ),
}


def test_hidden_corruption_and_what_somebody_else_wrote_behind_the_copy_are_found(
    mirrored: MirroredTopic, subtests: pytest.Subtests
) -> None:
    mirrored.create(records(3_000))
    flow = mirrored.flow()
    flow.run()
    copy = mirrored.copied()
    assert verify(flow).exit_code == 0
    mirrored.produce_remote([Record(value=b"of another program")])
    assert _only(verify(flow)) == (DifferenceKind.EXTRA, None, 3_000, ())

    for name, (change, expected) in _CORRUPTIONS.items():
        with subtests.test(name):
            put_on_target(mirrored.pair, mirrored.remote, change(copy))

            assert _only(verify(flow)) == expected
            assert Verifications(flow.ledger).verified_up_to("A->B") == ()


def test_compaction_on_both_sides_is_no_difference(mirrored: MirroredTopic) -> None:
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "min.compaction.lag.ms": "0",
    }
    mirrored.create(configs=configs)
    flow = mirrored.flow()
    for number in range(5):
        written = [Record(key=b"%d" % (n % 5), value=b"%d-%d" % (number, n)) for n in range(50)]
        mirrored.produce(written, compression_type="lz4")
        flow.run()
        time.sleep(0.2)
    for name, value in configs.items():
        set_config(mirrored.target, mirrored.remote, name, value)
    wait_for(lambda: len(mirrored.copied()) < 250, 60, why="the broker did not compact the topic")

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    (verdict,) = report.verdicts
    assert verdict.compacted_records > 0
    assert verdict.records > 0


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_retention_removes_after_the_plan_was_made_is_expired(mirrored: MirroredTopic, side: str) -> None:
    # A broker goes on giving deleted records out of a segment that holds others; these are years apart, so they have
    # segments of their own.
    for cluster, name in ((mirrored.source, mirrored.name), (mirrored.target, mirrored.remote)):
        create_topic(cluster, name, configs={"segment.ms": "60000"})
    flow = mirrored.flow()
    for start in (0, 400):
        mirrored.produce(records(600 if start else 400, start=start))
        flow.run()
    job = job_of(flow.config, plan_flow_verification(flow.config, flow.ledger, VerifyOptions()))
    cluster, name = (mirrored.source, mirrored.name) if side == "source" else (mirrored.target, mirrored.remote)
    delete_records(cluster, name, before=400)

    deadline = time.monotonic() + 60
    while not (verdict := verify_bin(job, 0)[0]).expired_records:
        assert time.monotonic() < deadline, "the broker did not delete the segment"
        time.sleep(0.5)

    assert verdict.verdict is Verdict.EQUAL, verdict
    assert (verdict.records, verdict.expired_records) == (600, 400)


def test_processes_of_their_own_find_the_same(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)
    for partition in range(2):
        mirrored.produce(records(300, partition=partition))
    flow = mirrored.flow()
    flow.run()
    told: list[int] = []

    report = verify(flow, make_runner=lambda _: run_locally(2, told.append), tasks_max=2)

    assert report.exit_code == 0
    assert report.records == 600
    assert sum(told) == report.source_bytes
    assert [each.digest for each in report.verdicts] == [each.digest for each in verify(flow).verdicts]


def test_given_a_copied_topic_that_was_deleted_on_the_target_then_it_says_so_as_the_next_run_does(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(10))
    flow = mirrored.flow()
    flow.run()
    delete_topic(mirrored.target, mirrored.remote)

    report = verify(flow)

    assert report.exit_code == 1
    assert [verdict.reason for verdict in report.verdicts] == ["target-deleted"]
    assert [error.reason for error in flow.run().errors] == ["target-deleted"]


def test_records_that_a_first_start_has_passed_over_are_counted_and_hold_nothing_up(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)
    for partition in (0, 1):
        mirrored.produce(records(10, partition=partition))
    flow = mirrored.flow({"mirror.first.start": "latest"})
    flow.run()
    mirrored.produce(records(5, start=10, partition=1))
    assert flow.run().records == 5

    report = verify(flow)

    assert (report.exit_code, report.records) == (0, 5), report.to_dict()
    assert [verdict.offsets_before_map for verdict in report.verdicts] == [10, 10]


def test_a_position_that_skips_records_proves_nothing_where_a_first_start_would_have_copied_them(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(10))
    flow = mirrored.flow({"mirror.first.start": "latest"})
    flow.run()
    earliest = mirrored.flow()

    assert [verdict.reason for verdict in verify(earliest).verdicts] == ["no-map"]


def test_the_command_tells_what_differs_and_where(mirrored: MirroredTopic) -> None:
    mirrored.create(records(200))
    flow = mirrored.flow()
    flow.run()
    arguments = ["verify", "--config", str(flow.path), "--flow", "A->B"]

    equal = CliRunner().invoke(app, arguments)
    tamper(mirrored.pair, mirrored.remote, lambda copy: copy[:50] + copy[51:])
    page = mirrored.folder / "report.html"
    different = CliRunner().invoke(app, [*arguments, "--json", "--html", str(page)])

    assert equal.exit_code == 0, equal.output
    assert "EQUAL: 200 records in 1 partition." in equal.output
    assert different.exit_code == 3
    document = json.loads(different.stdout)
    assert document["partitions"][0]["differences"][0]["kind"] == "missing"
    assert document["partitions"][0]["differences"][0]["source_offset"] == 50
    assert mirrored.name in page.read_text()
    assert watermarks(mirrored.target, mirrored.remote)[1] == 199


def test_what_a_policy_has_left_out_is_no_difference(mirrored: MirroredTopic) -> None:
    mirrored.create()
    mirrored.create_remote(configs={"max.message.bytes": "20000"})
    for part in (records(50), records(1, start=50, size=60_000), records(49, start=51)):
        mirrored.produce(part)
    flow = mirrored.flow({"mirror.poison.policy": "skip", "sync.topic.configs.enabled": "false"})
    assert flow.run().skipped == 1

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    (verdict,) = report.verdicts
    assert (verdict.records, verdict.skipped) == (99, 1)


def test_the_sources_of_a_merge_are_compared_each_by_itself(mirrored: MirroredTopic) -> None:
    first, second, merged = f"{mirrored.name}-1", f"{mirrored.name}-2", f"{mirrored.name}-merged"
    for name in (first, second):
        create_topic(mirrored.source, name)
    settings = {"mirror.topics.rename": f"{first}:{merged}, {second}:{merged}", "mirror.topics.merge.enabled": "true"}
    flow = mirrored.flow(topics=f"{first}, {second}", settings=settings)
    for start in (0, 1_000):
        produce(mirrored.source, first, records(60, start=start))
        produce(mirrored.source, second, records(40, start=start + 60))
        flow.run()

    report = verify(flow)

    assert report.exit_code == 0, report.to_dict()
    assert [verdict.records for verdict in report.verdicts] == [120, 80]
