"""Verified parts of a flow's copy, and known losses: verifications and gaps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from mirror_lib.features.page.api_models import Answer
from mirror_lib.features.page.context import TheFlow
from mirror_lib.features.page.overview import VERDICTS_KEPT
from mirror_lib.features.verify.tables import VerificationRow, Verifications
from mirror_lib.features.verify.verdicts import VerdictQueries, Verdicts, VerificationSummary
from mirror_lib.ledger.rows import GapRow

_VERIFICATIONS = 20
_DIFFERENCES = 50

router = APIRouter(prefix="/flows/{dag_id}")


class VerifiedTopic(Answer):
    """Up to where a topic was found equal."""

    topic: str
    #: Number of its partitions that were found equal up to some offset.
    partitions: int
    #: Verified source offsets, over all of them.
    verified_offsets: int
    #: Time of the oldest of the partitions' latest comparisons.
    oldest_at: datetime


class DifferentPartition(Answer):
    """A partition whose latest comparison found a difference."""

    topic: str
    partition: int
    target_topic: str
    verification: str
    finished_at: datetime
    difference_count: int
    #: The first of them: offsets and parts that differ, never the content of records.
    differences: list[dict[str, Any]]
    reason: str | None
    detail: str | None


class VerificationState(Answer):
    """The verification state of a flow."""

    now: datetime
    last_at: datetime | None
    equal: int
    different: int
    topics: list[VerifiedTopic]
    differences: list[DifferentPartition]
    verifications: list[VerificationSummary]


class Gap(Answer):
    """Source records that are not on the target, or not as the source has them now."""

    id: str
    topic: str
    partition: int
    cause: str
    first_offset: int
    next_offset: int
    records: int | None
    first_time: datetime | None
    last_time: datetime | None
    detail: str
    found_at: datetime
    state: str
    decided_by: str | None
    decided_at: datetime | None
    note: str | None


class Gaps(Answer):
    """A flow's gaps, undecided ones first, then newest first."""

    now: datetime
    open: int
    gaps: list[Gap]
    #: Sentences about records of aborted and open transactions that are on the target.
    uncommitted: list[str] = Field(default_factory=list)


@router.get("/verification")
def verification(looked: TheFlow) -> VerificationState:
    """Return what was compared, and the results."""
    if looked.ledger is None:
        return VerificationState(
            now=looked.now, last_at=None, equal=0, different=0, topics=[], differences=[], verifications=[]
        )
    name, since = looked.flow.name, looked.now - VERDICTS_KEPT
    queries = VerdictQueries(looked.ledger)
    verdicts = queries.of_flows(since, name).get(name, Verdicts())
    topics: dict[str, VerifiedTopic] = {}
    for row in Verifications(looked.ledger).verified_up_to(name):
        known = topics.get(row.topic)
        topics[row.topic] = VerifiedTopic(
            topic=row.topic,
            partitions=1 + (known.partitions if known else 0),
            verified_offsets=row.source_next + (known.verified_offsets if known else 0),
            oldest_at=min(row.verified_at, known.oldest_at) if known else row.verified_at,
        )
    return VerificationState(
        now=looked.now,
        last_at=verdicts.last_at,
        equal=verdicts.equal,
        different=verdicts.different,
        topics=sorted(topics.values(), key=lambda topic: topic.oldest_at),
        differences=[_different(row) for row in queries.different_partitions(name, since, _DIFFERENCES)],
        verifications=list(queries.newest_verifications(name, _VERIFICATIONS)),
    )


@router.get("/gaps")
def gaps(looked: TheFlow, limit: Annotated[int, Query(ge=1, le=1000)] = 200) -> Gaps:
    """Return what was lost, and the decisions."""
    # Other lists of the page do without the planning.
    from mirror_lib.planning.aborted_records import aborted_notes, copied_transactions

    rows: list[GapRow] = []
    opened: tuple[GapRow, ...] = ()
    flow = looked.flow.settings.flow
    if looked.ledger is not None:
        opened = looked.ledger.open_gaps(looked.flow.name)
        waiting = {row.id for row in opened}
        decided = (row for row in looked.ledger.gaps(looked.flow.name, limit) if row.id not in waiting)
        rows = [*opened, *decided][:limit]
    notes = list(aborted_notes(flow, copied_transactions(looked.ledger, flow)))
    return Gaps(now=looked.now, open=len(opened), gaps=[Gap.showing(row) for row in rows], uncommitted=notes)


def _different(row: VerificationRow) -> DifferentPartition:
    first = [dict(each) for each in row.differences or ()][:5]
    return DifferentPartition.showing(row, verification=row.id, differences=first)
