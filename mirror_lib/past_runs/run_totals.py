"""Copied records of runs per topic, summed up from the ledger's rows. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.printable import printable

_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class TopicTotal:
    """One source topic's share of one or several runs."""

    topic: str
    target_topic: str
    partitions: int
    records: int
    bytes: int
    #: Of the slowest partition; partitions are copied in parallel, so seconds do not add up.
    seconds: float
    failed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and XCom."""
        return {name: getattr(self, name) for name in self.__slots__}


def topic_totals(rows: Iterable[PartitionRunRow]) -> tuple[TopicTotal, ...]:
    """Add up partitions, rounds and runs, sorted by topic name.

    A partition counts as failed if its last row is a failure: a later round or retry may have succeeded.
    """
    by_topic: dict[tuple[str, str], list[PartitionRunRow]] = {}
    for row in rows:
        by_topic.setdefault((row.topic, row.target_topic), []).append(row)
    return tuple(_total(*names, group) for names, group in sorted(by_topic.items()))


def _total(topic: str, target_topic: str, rows: Sequence[PartitionRunRow]) -> TopicTotal:
    seconds: dict[int, float] = {}
    last: dict[int, str] = {}
    for row in rows:
        seconds[row.partition] = seconds.get(row.partition, 0.0) + (row.seconds or 0.0)
        last[row.partition] = row.state
    return TopicTotal(
        topic=topic,
        target_topic=target_topic,
        partitions=len(last),
        records=sum(row.records for row in rows),
        bytes=sum(row.bytes for row in rows),
        seconds=max(seconds.values(), default=0.0),
        failed=sum(state == "failed" for state in last.values()),
    )


def human_bytes(count: float) -> str:
    """A size with three significant digits and a decimal unit, as Kafka's tools print it: `1.25 MB`."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    digits = 0 if unit == 0 or count >= 100 else 1 if count >= 10 else 2
    return f"{count:.{digits}f} {_UNITS[unit]}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns for a log: the first left-aligned, the others right-aligned."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    lines = [header, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
