"""The input of the two halves of a transformed copy, and what the reading half passes to the writing half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mirror_lib.errors import MirrorError, error_from_json, error_to_json
from mirror_lib.planning.model import CopyJob, OpenPartition, Poison
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A source record for which a transform fails.

    Attributes:
        ends_partition: whether the partition ends before it, though the policy skips such records.
    """

    offset: int
    error: MirrorError
    ends_partition: bool = False


def first_stop(failed: Sequence[FailedRecord], *, skip: bool, start: int, end: int) -> int:
    """Offset in [start, end) at which a partition ends because of failing records."""
    stops = (each.offset for each in failed if each.offset >= start and (each.ends_partition or not skip))
    return min(stops, default=end)


@dataclass(frozen=True, slots=True)
class RowJob:
    """Partitions whose records have the same transforms. Holds credentials: never log it.

    Attributes:
        copy: bins of these partitions only.
        exact: whether the same source always gives the same rows, so that the rows of an interrupted run can be
            recognized.
        failed: known failing records, by their partition, ascending: the flow's policy skips them, or with policy
            `fail` the partition ends before the first of them.
        routes: whether a transform may send rows elsewhere than to their partition's own target.
        whole: whether reading fails as a whole if it does not reach the end of every partition.
        secret: secret of the job's reader results (`rows.reader_result`).
    """

    copy: CopyJob = field(repr=False)
    exact: bool
    failed: Mapping[TopicPartition, tuple[FailedRecord, ...]] = field(default_factory=dict)
    routes: bool = False
    whole: bool = False
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """The end of reading a partition: all records before `source_next` were passed to Spark."""

    source_next: int
    error: MirrorError | None = None
    poison: tuple[Poison, ...] = ()
    leader_epoch: int | None = None
    last_record: LastRecord | None = None


#: By the number of the partition in its job.
ReadEnds = Mapping[int, ReadEnd]


def ends_to_json(ends: ReadEnds) -> list[dict[str, Any]]:
    """Ends as JSON values."""
    return [
        {
            "number": number,
            "source_next": end.source_next,
            "error": error_to_json(end.error),
            "poison": [asdict(each) for each in end.poison],
            "leader_epoch": end.leader_epoch,
            "last_record": end.last_record,
        }
        for number, end in ends.items()
    ]


def ends_from_json(data: list[dict[str, Any]]) -> ReadEnds:
    """The inverse of `ends_to_json`."""
    return {
        each["number"]: ReadEnd(
            each["source_next"],
            error_from_json(each["error"]),
            tuple(Poison(**poison) for poison in each["poison"]),
            each["leader_epoch"],
            None if each["last_record"] is None else LastRecord(*each["last_record"]),
        )
        for each in data
    }


def reading_start(opened: OpenPartition) -> int:
    """The source offset at which reading starts: after a dirty start, the certain pair."""
    return opened.plan.start if opened.takeover is None else opened.takeover.source_offset


def first_number(job: CopyJob, bin_number: int) -> int:
    """The number in its job of the first partition of a bin; the others follow."""
    return sum(len(bin_) for bin_ in job.bins[:bin_number])
