"""Looking for the record that a transform cannot take, with a Spark that tells as much or as little as it may."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.copy.failing_records import (
    WAYS,
    Failure,
    OffsetRange,
    Probe,
    failing_record,
    named_record,
)
from mirror_lib.topology.names import TopicPartition

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 3)


def probe_for(bad: set[tuple[TopicPartition, int]], *, tells: bool = True, tries: list[int] | None = None) -> Probe:
    """Fails as a transform would that cannot take these records."""

    def probe(groups: Sequence[Sequence[OffsetRange]]) -> Failure | None:
        if tries is not None:
            tries.append(len(groups))
        for number, group in enumerate(groups):
            for each in group:
                for source, offset in sorted(bad):
                    if source == each.source and each.first <= offset < each.end:
                        return Failure(ValueError(f"{source} {offset}"), number if tells else None)
        return None

    return probe


@given(st.integers(0, 10_000), st.integers(1, 5_000), st.data(), st.booleans(), st.integers(min_value=1, max_value=4))
def test_given_some_bad_records_when_searched_then_one_of_them_is_found(
    first: int, size: int, data: st.DataObject, tells: bool, count: int
) -> None:
    ranges = [OffsetRange(ORDERS, first, first + size), OffsetRange(PAYMENTS, 0, 7)]
    places = st.sampled_from([(each.source, offset) for each in ranges for offset in (each.first, each.end - 1)])
    inside = st.integers(first, first + size - 1).map(lambda offset: (ORDERS, offset))
    bad = data.draw(st.sets(places | inside, min_size=1, max_size=count))

    found = failing_record(ranges, probe_for(bad, tells=tells))

    assert (found.source, found.offset) in bad
    assert str(found.error) == f"{found.source} {found.offset}"


def test_given_only_good_records_when_searched_then_nothing_is_found() -> None:
    assert failing_record([OffsetRange(ORDERS, 0, 1000)], probe_for(set())) is None


def test_given_a_job_that_fails_without_any_record_when_searched_or_one_is_named_then_no_record_is_blamed() -> None:
    def always(_: Sequence[Sequence[OffsetRange]]) -> Failure:
        return Failure(ValueError("the driver is ill"), None)

    assert failing_record([OffsetRange(ORDERS, 0, 1000)], always) is None
    assert named_record(OffsetRange(ORDERS, 0, 1000), 7, always) is None


def test_given_a_failure_that_does_not_come_again_when_searched_then_no_record_is_blamed() -> None:
    calls: list[int] = []

    def once(groups: Sequence[Sequence[OffsetRange]]) -> Failure | None:
        calls.append(1)
        return Failure(ValueError("lost executor"), 0) if len(calls) == 2 else None

    assert failing_record([OffsetRange(ORDERS, 0, 1000)], once) is None


def test_given_a_million_records_when_searched_then_it_takes_few_jobs() -> None:
    tries: list[int] = []

    found = failing_record([OffsetRange(ORDERS, 0, WAYS**7)], probe_for({(ORDERS, 1_234_567)}, tries=tries))

    assert found.offset == 1_234_567
    # One without records, and one for each digit.
    assert len(tries) == 1 + 7


@given(st.integers(-5, 25))
def test_given_a_record_that_is_named_when_it_is_tried_alone_then_it_is_blamed_only_if_it_was_read_and_fails(
    offset: int,
) -> None:
    bad = {(ORDERS, 7), (ORDERS, 12), (ORDERS, 21)}
    read = OffsetRange(ORDERS, 5, 20)

    found = named_record(read, offset, probe_for(bad))

    assert (found is not None) == (offset in (7, 12))
    if found is not None:
        assert (found.source, found.offset, str(found.error)) == (ORDERS, offset, f"{ORDERS} {offset}")


def test_given_a_partition_that_no_job_reads_when_a_record_of_it_is_named_then_nobody_is_blamed() -> None:
    assert named_record(None, 7, probe_for({(ORDERS, 7)})) is None
