"""What runs copied, added up per topic from the ledger's rows, and as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from mirror_lib.ledger.rows import PartitionRunRow


@dataclass(frozen=True, slots=True)
class TopicTotal:
    """One topic's share of one or several runs."""

    topic: str
    target_topic: str
    partitions: int
    records: int
    bytes: int
    #: Seconds of the slowest partition, which is how long the topic took: partitions are copied side by side.
    seconds: float
    #: Partitions whose last attempt failed.
    failed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and XCom."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


def totals_by_topic(rows: Iterable[PartitionRunRow]) -> tuple[TopicTotal, ...]:
    """Add up rows, which must come oldest first: of several attempts at a partition the last says how it ended."""
    partitions: dict[str, dict[int, list[PartitionRunRow]]] = {}
    for row in rows:
        partitions.setdefault(row.topic, {}).setdefault(row.partition, []).append(row)
    return tuple(_total(topic, list(attempts.values())) for topic, attempts in sorted(partitions.items()))


def _total(topic: str, partitions: Sequence[Sequence[PartitionRunRow]]) -> TopicTotal:
    return TopicTotal(
        topic=topic,
        target_topic=partitions[0][-1].target_topic,
        partitions=len(partitions),
        records=sum(row.records for rows in partitions for row in rows),
        bytes=sum(row.bytes for rows in partitions for row in rows),
        seconds=max(sum(row.seconds for row in rows) for rows in partitions),
        failed=sum(rows[-1].state == "failed" for rows in partitions),
    )


def totals_table(totals: Sequence[TopicTotal], *, title: str = "") -> Table:
    """The totals with a last line for all topics together."""
    table = Table(title=title or None, show_footer=bool(totals))
    table.add_column("topic", footer="all topics")
    table.add_column("on the target")
    table.add_column("partitions", justify="right", footer=str(sum(total.partitions for total in totals)))
    table.add_column("records", justify="right", footer=f"{sum(total.records for total in totals):,}")
    table.add_column("bytes", justify="right", footer=f"{sum(total.bytes for total in totals):,}")
    table.add_column("seconds", justify="right", footer=f"{max((total.seconds for total in totals), default=0.0):.2f}")
    table.add_column("failed", justify="right", footer=str(sum(total.failed for total in totals)))
    for total in totals:
        table.add_row(
            total.topic,
            total.target_topic,
            str(total.partitions),
            f"{total.records:,}",
            f"{total.bytes:,}",
            f"{total.seconds:.2f}",
            str(total.failed),
        )
    return table
