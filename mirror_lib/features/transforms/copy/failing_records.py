"""Find a record for which a transform fails, if Spark only reports that one of many failed. Pure but for its probe.

An expression that fails ends its whole Spark job without naming the record. So ranges of offsets are tried without
writing, a few per job: Spark reports which of them failed, and that one is split again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from mirror_lib.topology.names import TopicPartition

#: Ranges that are tried in one job: with more, fewer jobs are needed, each of which takes longer.
WAYS = 8


class OffsetRange(NamedTuple):
    """Offsets [first, end) of a source partition."""

    source: TopicPartition
    first: int
    end: int


class Failure(NamedTuple):
    """The failure of a try.

    Attributes:
        group: the number of the group that failed, None if unknown; not always the first that would fail.
    """

    error: Exception
    group: int | None


class Found(NamedTuple):
    """A record that fails if it is tried alone."""

    source: TopicPartition
    offset: int
    error: Exception


#: Tries groups of ranges; None if all their records succeed.
Probe = Callable[[Sequence[Sequence[OffsetRange]]], Failure | None]


def named_record(within: OffsetRange | None, offset: int, probe: Probe) -> Found | None:
    """The record that an error's text names, if it fails when it is tried alone.

    Spark's error texts quote record contents, so the producer of a record may make them name another one.

    Args:
        within: the range read of the named partition; None if there is no such partition.
        offset: the named offset.
    """
    if within is None or not within.first <= offset < within.end:
        return None
    alone = within._replace(first=offset, end=offset + 1)
    failure = probe([[alone]])
    if failure is None or probe([[alone._replace(end=offset)]]) is not None:
        return None
    return Found(alone.source, offset, failure.error)


def failing_record(ranges: Sequence[OffsetRange], probe: Probe) -> Found | None:
    """A record that fails; None if nothing fails, or if the failure occurs without any record.

    Args:
        ranges: ranges of different partitions.
    """
    left = [each for each in ranges if each.first < each.end]
    if not left or probe([[each._replace(end=each.first) for each in left]]) is not None:
        return None
    while True:
        groups = _part(left)
        failed = _try(groups, probe)
        if failed is None:
            return None
        error, left = failed
        if len(left) == 1 and left[0].end - left[0].first == 1:
            return Found(left[0].source, left[0].first, error)


def _try(groups: Sequence[Sequence[OffsetRange]], probe: Probe) -> tuple[Exception, list[OffsetRange]] | None:
    failure = probe(groups)
    if failure is None:
        return None
    if failure.group is not None:
        return failure.error, list(groups[failure.group])
    for group in groups:
        alone = probe([group])
        if alone is not None:
            return alone.error, list(group)
    return None


def _part(ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    if len(ranges) > 1:
        return [list(ranges[first:stop]) for first, stop in _cuts(len(ranges))]
    (only,) = ranges
    return [[only._replace(first=only.first + a, end=only.first + b)] for a, b in _cuts(only.end - only.first)]


def _cuts(size: int) -> list[tuple[int, int]]:
    ways = min(WAYS, size)
    edges = [size * number // ways for number in range(ways + 1)]
    return list(pairwise(edges))
