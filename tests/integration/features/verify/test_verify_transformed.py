"""Verification of transformed copies without Spark: the source goes through the same function again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mirror_lib.features.transforms.record_mark import UntransformableRecordError
from mirror_lib.features.verify.findings import DifferenceKind, PartitionVerdict, Verdict
from mirror_lib.features.verify.model import Budget, VerifyMode
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, job_of, plan_flow_verification
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.features.verify.transformed.model import RefusedRecord
from mirror_lib.topology.names import TopicPartition
from tests.support.flows import Flow
from tests.support.kafka import Record, delete_records, delete_topic, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import RowFunction, TransformHere, number_of, only, repeated, upper, with_values
from tests.support.verifying import CompareHere, changed, put_on_target, verify, verify_transformed

_Change = Callable[[list[Record]], Sequence[Record]]
_RECORDS = 900


def third(value: bytes | None) -> bool:
    return number_of(value) % 3 == 0


#: With what becomes of one record, and whether the flow's own transform may make several of one.
_FUNCTIONS = {"filter": only(third), "mask": with_values(upper), "several": repeated(2)}


def transforms(topics: str, folder: Path, *, several: bool = False) -> dict[str, str]:
    """Settings of a transform of which only what it may do counts: a function stands in its place."""
    settings = {"A->B.mirror.transforms": "any", "A->B.mirror.transform.any.topics": topics}
    if not several:
        return {**settings, "A->B.mirror.transform.any.filter": "true"}
    file = folder / "several.sql"
    file.write_text("SELECT value FROM records LATERAL VIEW explode(sequence(1, 2)) AS number")
    return {**settings, "A->B.mirror.transform.any.sql.file": str(file)}


def a_flow(mirrored: MirroredTopic, *, several: bool = False) -> Flow:
    """A flow whose topic goes through a transform, with some records on the source."""
    mirrored.create(records(_RECORDS))
    chain = transforms(mirrored.name, mirrored.folder, several=several)
    return mirrored.flow({"mirror.batch.max.bytes": "4096", **chain})


def only_difference(report: VerifyReport) -> tuple[DifferenceKind, int | None, int | None, tuple[str, ...]]:
    ((difference,),) = (verdict.differences for verdict in report.verdicts)
    assert (report.difference_count, report.exit_code) == (1, 3)
    return difference.kind, difference.source_offset, difference.target_offset, difference.what


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_given_a_transformed_copy_when_the_same_transform_is_applied_then_it_is_equal_and_recent_compares_new_records(
    mirrored: MirroredTopic, name: str
) -> None:
    function = _FUNCTIONS[name]
    flow = a_flow(mirrored, several=name == "several")
    written = flow.run(runner=TransformHere(function)).records
    first = verify_transformed(flow, function, mode=VerifyMode.RECENT)
    nothing = verify_transformed(flow, function, mode=VerifyMode.RECENT)
    report = verify_transformed(flow, function)
    again = verify_transformed(flow, function)
    verified = Verifications(flow.ledger).verified_up_to("A->B")
    mirrored.produce(records(90, start=_RECORDS))
    more = flow.run(runner=TransformHere(function)).records

    recent = verify_transformed(flow, function, mode=VerifyMode.RECENT)

    assert (first.exit_code, report.exit_code, recent.exit_code) == (0, 0, 0), (report.to_dict(), recent.to_dict())
    assert first.records == report.records == written > 0
    assert (nothing.idle, len(nothing.confirmed)) == (1, 1)
    assert [each.digest for each in report.verdicts] == [each.digest for each in again.verdicts] != [None]
    assert report.source_bytes > 0
    assert [row.source_next for row in verified] == [_RECORDS]
    assert recent.records == more > 0


_CHANGES: dict[str, tuple[_Change, Callable[[int], tuple[DifferenceKind, int | None, int | None, tuple[str, ...]]]]] = {
    "altered": (changed(100, value=b"!"), lambda source: (DifferenceKind.ALTERED, source, 100, ("value",))),
    "missing": (lambda copy: copy[:100] + copy[101:], lambda source: (DifferenceKind.MISSING, source, None, ())),
    "added": (
        lambda copy: [*copy[:100], Record(value=b"!"), *copy[100:]],
        lambda _: (DifferenceKind.EXTRA, None, 100, ()),
    ),
    "one more at the end": (lambda copy: [*copy, Record(value=b"!")], lambda _: (DifferenceKind.EXTRA, None, -1, ())),
}


@pytest.mark.parametrize(("name", "source"), [("filter", 300), ("mask", 100), ("several", 50)])
def test_given_a_target_that_was_tampered_with_when_verified_then_it_is_told_where(
    mirrored: MirroredTopic, name: str, source: int, subtests: pytest.Subtests
) -> None:
    function = _FUNCTIONS[name]
    flow = a_flow(mirrored, several=name == "several")
    written = flow.run(runner=TransformHere(function)).records
    copy = mirrored.copied()
    for change, (tampering, expected) in _CHANGES.items():
        with subtests.test(change):
            put_on_target(mirrored.pair, mirrored.remote, tampering(copy))

            report = verify_transformed(flow, function)

            kind, source_offset, target_offset, what = expected(source)
            if target_offset == -1:
                target_offset = written
            if name == "several" and change == "missing":
                # Both that were made of one record are the same: which of them is missing cannot be told.
                assert only_difference(report)[:2] == (kind, source_offset)
            else:
                assert only_difference(report) == (kind, source_offset, target_offset, what)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_given_a_sample_or_a_budget_of_bytes_when_verified_then_a_part_is_compared_exactly_and_recent_goes_on(
    mirrored: MirroredTopic, name: str
) -> None:
    function = _FUNCTIONS[name]
    flow = a_flow(mirrored, several=name == "several")
    mirrored.produce(records(5_000, start=_RECORDS, size=1_000))
    written = flow.run(runner=TransformHere(function)).records

    sample = verify_transformed(flow, function, mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=150_000), seed=3)
    begun = verify_transformed(flow, function, budget=Budget(max_bytes=1_000_000))
    rest = verify_transformed(flow, function, mode=VerifyMode.RECENT)

    assert sample.exit_code == 0, sample.to_dict()
    assert 0 < sample.records < written
    assert all(each.complete for verdict in sample.verdicts for each in verdict.outcomes)
    assert (begun.exit_code, rest.exit_code) == (0, 0), (begun.to_dict(), rest.to_dict())
    assert 0 < begun.records < written
    # What was made of one record at the edge may be compared twice.
    assert written <= begun.records + rest.records <= written + 1


def refusing(function: RowFunction, *numbers: int) -> RowFunction:
    """A function that cannot take some records."""

    def refuse(rows):  # type: ignore[no-untyped-def]
        assert {number_of(value) for value in rows.column("value").to_pylist()}.isdisjoint(numbers)
        return function(rows)

    return refuse


def test_given_a_record_that_cannot_be_transformed_any_more_when_verified_then_it_is_told_up_to_where(
    mirrored: MirroredTopic,
) -> None:
    flow = a_flow(mirrored)
    flow.run(runner=TransformHere(with_values(upper)))
    refused = {TopicPartition(mirrored.name, 0): (RefusedRecord(400, UntransformableRecordError("no.")),)}
    runner = CompareHere(refusing(with_values(upper), 400), refused=refused)

    report = verify(flow, make_runner=lambda _: runner)

    assert report.exit_code == 1
    (verdict,) = report.verdicts
    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "transform")
    # Of the target's batches, the one that holds it is not compared.
    assert 300 < verdict.records <= 400


@pytest.mark.parametrize("side", ["source", "target"])
def test_given_retention_that_goes_on_between_plan_and_comparison_then_what_it_removed_is_expired(
    mirrored: MirroredTopic, side: str
) -> None:
    # A broker goes on giving deleted records out of a segment that holds others; these are years apart, so they have
    # segments of their own.
    mirrored.create_remote(configs={"segment.ms": "60000"})
    mirrored.create(configs={"segment.ms": "60000"})
    flow = mirrored.flow(transforms(mirrored.name, mirrored.folder))
    for start, count in ((0, 400), (400, 600)):
        mirrored.produce(records(count, start=start))
        flow.run(runner=TransformHere(only(third)))
    job = job_of(flow.config, plan_flow_verification(flow.config, flow.ledger, VerifyOptions()))
    if side == "source":
        delete_records(mirrored.source, mirrored.name, before=400)
    else:
        delete_records(mirrored.target, mirrored.remote, before=134)

    deadline = time.monotonic() + 60
    while not (verdict := only_verdict(CompareHere(only(third))(job))).expired_records:
        assert time.monotonic() < deadline, "the broker did not delete the segment"
        time.sleep(0.5)

    assert verdict.verdict is Verdict.EQUAL, verdict
    assert (verdict.records, verdict.expired_records) == (200, 134)


def only_verdict(found: Sequence[object]) -> PartitionVerdict:
    (verdict,) = found
    assert isinstance(verdict, PartitionVerdict)
    return verdict


def test_given_a_target_that_is_gone_when_compared_then_the_reason_is_told(mirrored: MirroredTopic) -> None:
    flow = a_flow(mirrored)
    flow.run(runner=TransformHere(only(third)))

    def late(_: object) -> CompareHere:
        delete_topic(mirrored.target, mirrored.remote)
        return CompareHere(only(third))

    report = verify(flow, make_runner=late)

    (verdict,) = report.verdicts
    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "topic-missing")
