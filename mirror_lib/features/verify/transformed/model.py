"""Inputs of both halves of a transformed comparison, and the messages from the reading half to the comparing half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

from mirror_lib.errors import MirrorError, error_from_json, error_to_json
from mirror_lib.features.verify.findings import Stopped
from mirror_lib.features.verify.model import CheckRange, PartitionCheck, VerifyJob
from mirror_lib.topology.names import TopicPartition


class RefusedRecord(NamedTuple):
    """A source record that a transform rejects."""

    offset: int
    error: MirrorError


@dataclass(frozen=True, slots=True)
class RowVerifyJob:
    """Checks of partitions whose records go through the same transforms. Holds credentials: never log it.

    Attributes:
        verify: bins of these partitions alone.
        refused: records that are known to fail, by partition, ascending. One that the ledger names as skipped is not
            read; otherwise the partition can be compared only up to the first of them.
        secret: of the job's reader results (`rows.reader_result`).
    """

    verify: VerifyJob = field(repr=False)
    refused: Mapping[TopicPartition, tuple[RefusedRecord, ...]] = field(default_factory=dict)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """How reading a range ended: all records before `source_next` were passed to Spark.

    Attributes:
        bytes: of the source's log that were read.
        log_start: where retention moved the start of the log meanwhile; 0: nowhere.
        skipped: records that were not read, since the ledger names them as skipped.
    """

    source_next: int
    bytes: int = 0
    log_start: int = 0
    skipped: int = 0
    stopped: Stopped | None = None
    error: MirrorError | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of the reading half, also sent at the end. Ranges are read one after the other.

    Attributes:
        ends: of the ranges that are read, by their number; a missing one was not begun.
        number: of the range that is being read.
        log_start: of that range, see `RangeEnd`.
    """

    ends: Mapping[int, RangeEnd] = field(default_factory=dict)
    number: int = -1
    log_start: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return a value that JSON can hold."""
        ends = [[number, {**_fields(end), "error": error_to_json(end.error)}] for number, end in self.ends.items()]
        return {"ends": ends, "number": self.number, "log_start": self.log_start}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls({number: _range_end(**end) for number, end in data["ends"]}, data["number"], data["log_start"])


def _fields(end: RangeEnd) -> dict[str, Any]:
    return {each.name: getattr(end, each.name) for each in fields(end)}


def _range_end(*, stopped: str | None, error: dict[str, Any] | None, **rest: int) -> RangeEnd:
    return RangeEnd(**rest, stopped=None if stopped is None else Stopped(stopped), error=error_from_json(error))


class NumberedRange(NamedTuple):
    """A range of a bin. Its number marks its rows (`rows.layout`)."""

    number: int
    check: PartitionCheck
    range: CheckRange


def numbered_ranges(job: RowVerifyJob, bin_number: int) -> Iterator[NumberedRange]:
    """The ranges of a bin, in the order in which they are read. Numbers are the job's: no two bins share one."""
    number = sum(len(check.ranges) for bin_ in job.verify.bins[:bin_number] for check in bin_)
    for check in job.verify.bins[bin_number]:
        for range_ in check.ranges:
            yield NumberedRange(number, check, range_)
            number += 1


def first_refusal(job: RowVerifyJob, check: PartitionCheck, range_: CheckRange) -> tuple[int, MirrorError | None]:
    """Return where a range ends because a record that should have been transformed cannot be, and its error."""
    for refused in job.refused.get(check.source, ()):
        if range_.source_first <= refused.offset < range_.source_next and not is_skipped(check, refused.offset):
            return refused.offset, refused.error
    return range_.source_next, None


def is_skipped(check: PartitionCheck, offset: int) -> bool:
    """Return True if the ledger names a record as not copied."""
    return any(gap.first_offset <= offset < gap.next_offset for gap in check.known_gaps if not gap.rewritten)
