"""The consumer groups of a flow: duplicates and skipped records of each on failover now, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from mirror_lib.features.page.api_models import Answer, Seen, StorableText
from mirror_lib.features.page.context import TheFlow
from mirror_lib.features.page.limits import Kind
from mirror_lib.features.page.queries import PageQueries
from mirror_lib.features.page.security import limit_requests

_PARTITIONS = 500

router = APIRouter(prefix="/flows/{dag_id}/groups", dependencies=[Depends(limit_requests(Kind.LISTS))])


class Group(Answer):
    """One group over all its partitions."""

    group: str
    partitions: int
    behind: int
    duplicates: int
    skipped: int
    #: Why it would not continue exactly at its position -> number of partitions.
    reasons: dict[str, int]
    seen: Seen


class Groups(Answer):
    """One page of groups, those with most skipped records or duplicates first."""

    now: datetime
    total: int
    page: int
    size: int
    rows: list[Group]


class GroupPartition(Answer):
    """One group in one partition."""

    topic: str
    partition: int
    target_topic: str
    upstream: int | None
    target_offset: int | None
    target_committed: int | None
    duplicates: int | None
    skipped: int | None
    reason: str | None
    what: str | None


class GroupDetail(Answer):
    """One group, partition by partition."""

    now: datetime
    group: str
    rows: list[GroupPartition]


@router.get("")
def groups(
    looked: TheFlow,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    size: Annotated[int, Query(ge=1, le=500)] = 50,
    name: Annotated[StorableText | None, Query(max_length=249)] = None,
    behind: bool = False,
) -> Groups:
    """Return one page of groups."""
    if looked.ledger is None:
        return Groups(now=looked.now, total=0, page=page, size=size, rows=[])
    pages, flow = PageQueries(looked.ledger), looked.flow.name
    total, rows = pages.groups(flow, name=name, behind_only=behind, offset=(page - 1) * size, limit=size)
    reasons = pages.group_reasons(flow, [row.group for row in rows])
    return Groups(
        now=looked.now,
        total=total,
        page=page,
        size=size,
        rows=[
            Group.showing(row, reasons=reasons.get(row.group, {}), seen=looked.seen_at(row.observed_at)) for row in rows
        ],
    )


@router.get("/partitions")
def group(looked: TheFlow, group: Annotated[StorableText, Query(max_length=4096)]) -> GroupDetail:
    """Return the positions of one group; its name may contain anything, so it is not part of the path."""
    rows = (
        ()
        if looked.ledger is None
        else PageQueries(looked.ledger).group_partitions(looked.flow.name, group, _PARTITIONS)
    )
    return GroupDetail(
        now=looked.now,
        group=group,
        rows=[GroupPartition.showing(row) for row in rows],
    )
