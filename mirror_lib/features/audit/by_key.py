"""Compare a topic with a copy that is partitioned in another way: the order within a partition is not the source's.

Consumers rely on the order of a key, so that is compared, and of records without a key only their number. First each
side gets a digest for each of many buckets of keys, in memory of a fixed size; then the records of buckets that differ
are taken from both logs once more and compared one by one. Pure: records in, findings out.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from mirror_lib.features.audit.findings import UNORDERED, Answer, Facts, Finding, Occurrence, Unpaired
from mirror_lib.features.audit.unmatched import NULL, Unmatched, content_of
from mirror_lib.features.verify.compare.record_columns import Columns
from mirror_lib.features.verify.compare.side import REPLACED

#: Bytes of a bucket: a digest for each side.
BUCKET_BYTES = 16
#: Records of each side that are compared one by one; each takes about 300 bytes.
MOST_RECORDS = 200_000
_BITS_63 = (1 << 63) - 1
#: Of Knuth's MMIX: makes the digest of a bucket depend on the order.
_FACTOR = 6364136223846793005


class Digests:
    """A digest of each bucket of one side."""

    def __init__(self, buckets: int, *, share: tuple[int, int] = (0, 1), times: bool = True) -> None:
        """Begin without records.

        Args:
            share: (number, count): of count times as many buckets, only every count-th one is kept.
            times: whether timestamps count.
        """
        self.values = array("q", bytes(8 * buckets))
        self._buckets, self._share, self._times = buckets, share, times
        self.records = 0
        #: Time of the first record of each partition, in epoch milliseconds.
        self.first_times: dict[int, int] = {}

    def add(self, partition: int, found: Columns) -> None:
        """Add records in the order of their log."""
        self.first_times.setdefault(partition, found.times[0])
        values, (number, count), times = self.values, self._share, self._times
        buckets = self._buckets * count
        for time, tail in zip(found.times, found.tails, strict=True):
            content = content_of(tail)
            bucket, part = divmod(bucket_of(content, buckets), count)
            if part != number:
                continue
            self.records += 1
            digest = hash((content, time if times else REPLACED)) & _BITS_63
            before = values[bucket]
            # Without a key there is no order.
            values[bucket] = (before if content[0] == NULL else before * _FACTOR) + digest & _BITS_63


def bucket_of(content: tuple[int, int, int], buckets: int) -> int:
    """The bucket of a record: by its key, without one by its whole content."""
    return (content[0] if content[0] != NULL else hash(content)) % buckets


def differing(source: Digests, target: Digests, *, share: tuple[int, int] = (0, 1)) -> set[int]:
    """The buckets that differ, by their numbers among those of all shares."""
    number, count = share
    pairs = zip(source.values, target.values, strict=True)
    return {bucket * count + number for bucket, (mine, theirs) in enumerate(pairs) if mine != theirs}


@dataclass(slots=True)
class Chosen:
    """The records of some buckets, of one side."""

    buckets: set[int]
    #: Number of all buckets.
    count: int
    times: bool = True
    records: list[Unmatched] = field(default_factory=list)
    #: True if there are more than are kept.
    is_cut: bool = False

    def add(self, partition: int, found: Columns) -> None:
        """Add those of the records that are in the buckets."""
        for offset, time, tail in zip(found.offsets, found.times, found.tails, strict=True):
            content = content_of(tail)
            if bucket_of(content, self.count) not in self.buckets:
                continue
            if len(self.records) >= MOST_RECORDS:
                self.is_cut = True
                return
            self.records.append(Unmatched(offset, time if self.times else REPLACED, *content, -1, partition))


def compare_chosen(
    source: Chosen,
    target: Chosen,
    facts: Facts,
) -> tuple[int, list[Finding]]:
    """Compare the records of buckets, key by key; return the number of pairs in order, and the findings.

    Args:
        facts: with an end by partition.
    """
    numbers: dict[int, int] = {}
    here, there = ([_of_key(each, numbers) for each in side.records] for side in (source, target))
    unpaired = Unpaired(here, there, facts)
    answer = Answer()
    for each in here:
        answer.add(each.content, each.time, Occurrence(each.offset, partition=each.partition))
        answer.source_keys[each.key] = each.offset
    answer.target_keys = {each.key: each.offset for each in there}
    return unpaired.in_order, unpaired.findings(answer)


def _of_key(record: Unmatched, numbers: dict[int, int]) -> Unmatched:
    """The record with its key as its place; negative, since what is next to it means nothing."""
    place = UNORDERED if record.key == NULL else UNORDERED - 1 - numbers.setdefault(record.key, len(numbers))
    return record._replace(hunk=place)
