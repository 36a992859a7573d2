"""A copy in other partitions is right if each key has the source's records in the source's order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.audit.findings import Finding, Kind
from tests.support.auditing import audited_by_key, renumbered
from tests.support.records.record_batches import SourceRecord

_Records = list[SourceRecord]


def written(count: int, keys: int) -> _Records:
    """Different records; every seventh has no key."""
    return [
        SourceRecord(
            0,
            timestamp=1_700_000_000_000 + number,
            key=None if number % 7 == 6 else b"key-%d" % (number % keys),
            value=b"value-%d" % number,
        )
        for number in range(count)
    ]


def partitioned(records: _Records, count: int) -> dict[int, _Records]:
    """The records as a producer with so many partitions writes them."""
    partitions: dict[int, _Records] = defaultdict(list)
    for number, each in enumerate(records):
        partitions[(number if each.key is None else crc32(each.key)) % count].append(each)
    return {number: renumbered(each) for number, each in partitions.items()}


def kinds(findings: list[Finding]) -> dict[Kind, int]:
    """Number of records of each kind."""
    counts: dict[Kind, int] = defaultdict(int)
    for each in findings:
        counts[each.kind] += each.records
    return counts


@given(
    count=st.integers(1, 300),
    keys=st.integers(1, 40),
    partitions=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    buckets=st.integers(1, 64),
)
def test_given_other_partitions_then_nothing_is_wrong(
    count: int, keys: int, partitions: tuple[int, int], buckets: int
) -> None:
    records = written(count, keys)
    source, target = (partitioned(records, each) for each in partitions)

    equal, findings = audited_by_key(source, target, buckets=buckets)

    assert findings == []
    assert equal <= count


@given(st.data())
def test_given_a_fault_then_it_is_found_where_it_is(data: st.DataObject) -> None:
    records = written(data.draw(st.integers(60, 300)), data.draw(st.integers(1, 9)))
    at = data.draw(st.integers(0, len(records) - 1))
    kind = data.draw(st.sampled_from([Kind.MISSING, Kind.REPEATED, Kind.CHANGED, Kind.EXTRA]))
    changed = list(records)
    match kind:
        case Kind.MISSING:
            del changed[at]
        case Kind.REPEATED:
            changed.append(records[at])
        case Kind.CHANGED:
            changed[at] = replace(records[at], headers=(("added", b""),))
        case _:
            changed.append(SourceRecord(0, key=b"key-1", value=b"foreign"))

    _, findings = audited_by_key(partitioned(records, 3), partitioned(changed, 2), buckets=1 << 10)

    (finding,) = findings
    assert (finding.kind, finding.records) == (kind, 1)
    if finding.source is not None:
        where = {
            (number, each.offset)
            for number, side in partitioned(records, 3).items()
            for each in side
            if each.value == records[at].value
        }
        assert {(finding.source.partition, finding.source.first)} == where


def test_given_two_records_of_a_key_that_changed_places_then_one_is_reordered() -> None:
    records = written(60, 3)
    changed = [*records[:10], records[16], *records[11:16], records[10], *records[17:]]

    _, findings = audited_by_key(partitioned(records, 3), partitioned(changed, 2), buckets=1 << 10)

    assert kinds(findings) == {Kind.REORDERED: 1}
