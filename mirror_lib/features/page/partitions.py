"""The partitions of a flow: a page of them, sorted and filtered by the ledger, and the worst ones as a strip."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from mirror_lib.features.page.api_models import Answer, Duration, Seen, StorableText
from mirror_lib.features.page.context import TheFlow
from mirror_lib.features.page.limits import Kind
from mirror_lib.features.page.queries import PARTITION_ORDERS, PageQueries, PartitionFilter
from mirror_lib.features.page.security import limit_requests
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.past_runs.outlooks import Outlook

#: Cells of the strip.
_CELLS = 600

router = APIRouter(prefix="/flows/{dag_id}/partitions", dependencies=[Depends(limit_requests(Kind.LISTS))])

PartitionOrder = StrEnum("PartitionOrder", {name: name for name in PARTITION_ORDERS})  # type: ignore[misc]
_WORST_FIRST = PartitionOrder("behind")


class Partition(Answer):
    """The state of one partition."""

    topic: str
    partition: int
    target_topic: str
    records_behind: int
    bytes_behind: int | None
    behind_since: datetime | None
    catch_up_seconds: Duration
    headroom_seconds: Duration
    outlook: str
    reason: str | None
    detail: str | None
    position: int | None
    log_start: int | None
    log_end: int | None
    seen: Seen


class Partitions(Answer):
    """One page of partitions."""

    now: datetime
    total: int
    page: int
    size: int
    rows: list[Partition]
    #: Of all partitions of the flow, regardless of the filter.
    outlooks: dict[str, int]
    reasons: dict[str, int]


class Cell(Answer):
    """One partition in the strip."""

    topic: str
    partition: int
    behind: int
    outlook: str
    reason: str | None


class Strip(Answer):
    """The partitions with the largest lag, by name."""

    now: datetime
    cells: list[Cell]
    #: Number of partitions without a cell, because their lag is smaller.
    not_shown: int
    seen: Seen | None


@router.get("")
def partitions(
    looked: TheFlow,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    size: Annotated[int, Query(ge=1, le=500)] = 50,
    sort: PartitionOrder = _WORST_FIRST,
    descending: bool = True,
    topic: Annotated[StorableText | None, Query(max_length=249)] = None,
    reason: Annotated[str | None, Query(max_length=100, pattern=r"^[a-z\-]*$")] = None,
    outlook: Outlook | None = None,
    lagging: bool = False,
) -> Partitions:
    """Return one page, the worst first by default."""
    total = 0
    rows: tuple[PartitionObservationRow, ...] = ()
    outlooks: dict[str, int] = {}
    reasons: dict[str, int] = {}
    if looked.ledger is not None:
        wanted = PartitionFilter(
            topic=topic, reason=reason or None, outlook=None if outlook is None else outlook.value, lagging=lagging
        )
        total, rows = PageQueries(looked.ledger).partitions(
            looked.flow.name,
            wanted,
            order=sort.value,
            descending=descending,
            offset=(page - 1) * size,
            limit=size,
        )
        outlooks, reasons = PageQueries(looked.ledger).partition_counts(looked.flow.name)
    return Partitions(
        now=looked.now,
        total=total,
        page=page,
        size=size,
        rows=[Partition.showing(row, seen=looked.seen_at(row.observed_at)) for row in rows],
        outlooks=outlooks,
        reasons=reasons,
    )


@router.get("/strip")
def strip(looked: TheFlow) -> Strip:
    """Return the lag of many partitions."""
    if looked.ledger is None:
        return Strip(now=looked.now, cells=[], not_shown=0, seen=None)
    total, rows = PageQueries(looked.ledger).partitions(
        looked.flow.name, PartitionFilter(), order="behind", descending=True, offset=0, limit=_CELLS
    )
    ordered = sorted(rows, key=lambda row: (row.topic, row.partition))
    return Strip(
        now=looked.now,
        cells=[Cell.showing(row, behind=row.records_behind) for row in ordered],
        not_shown=total - len(rows),
        seen=looked.seen_at(min(row.observed_at for row in rows)) if rows else None,
    )
