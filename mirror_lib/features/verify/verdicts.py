"""Verification results for pages: the latest comparison of each partition, and the totals of each verification."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, FromClause, Table, and_, case, func, select, tuple_

from mirror_lib.features.verify.tables import VerificationRow
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.verifications import WHOLE_RECORDS

_VERIFICATIONS: Table = METADATA.tables["verification"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """The number of a flow's partitions by the result of the latest complete comparison of each."""

    equal: int = 0
    different: int = 0
    #: When the latest comparison finished.
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationSummary:
    """One verification across all its partitions."""

    id: str
    mode: str
    started_at: datetime
    finished_at: datetime
    partitions: int
    equal: int
    different: int
    unverifiable: int
    records: int
    bytes: int


class VerdictQueries:
    """Verification results. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def of_flows(self, since: datetime, flow: str | None = None) -> dict[str, Verdicts]:
        """Partitions by the result of their latest comparison since then, by flow; samples and failures are ignored."""
        columns = _VERIFICATIONS.c
        query = (
            select(
                columns.flow,
                func.sum(case((columns.verdict == "equal", 1), else_=0)).label("equal"),
                func.sum(case((columns.verdict == "different", 1), else_=0)).label("different"),
                func.max(columns.finished_at, type_=columns.finished_at.type).label("last_at"),
            )
            .where(_is_newest_comparison(since, flow))
            .group_by(columns.flow)
        )
        with self._database.read() as connection:
            return {
                row["flow"]: Verdicts(equal=int(row["equal"]), different=int(row["different"]), last_at=row["last_at"])
                for row in connection.execute(query).mappings()
            }

    def different_partitions(self, flow: str, since: datetime, limit: int) -> tuple[VerificationRow, ...]:
        """Comparisons that found a difference and were not followed by an equal one, latest first."""
        columns = _VERIFICATIONS.c
        query = (
            select(_VERIFICATIONS)
            .where(_is_newest_comparison(since, flow), columns.verdict == "different")
            .order_by(columns.finished_at.desc(), columns.topic, columns.partition)
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(VerificationRow(**row) for row in connection.execute(query).mappings())

    def newest_verifications(self, flow: str, limit: int) -> tuple[VerificationSummary, ...]:
        """A flow's latest verifications, latest first."""
        columns = _VERIFICATIONS.c
        counts = {
            verdict: func.sum(case((columns.verdict == verdict, 1), else_=0)).label(verdict)
            for verdict in ("equal", "different", "unverifiable")
        }
        started = func.min(columns.started_at, type_=columns.started_at.type)
        query = (
            select(
                columns.id,
                func.min(columns.mode).label("mode"),
                started.label("started_at"),
                func.max(columns.finished_at, type_=columns.finished_at.type).label("finished_at"),
                func.count().label("partitions"),
                *counts.values(),
                func.sum(columns.records).label("records"),
                func.sum(columns.bytes).label("bytes"),
            )
            .where(columns.flow == flow)
            .group_by(columns.id)
            .order_by(started.desc(), columns.id)
            .limit(limit)
        )
        numbers = ("partitions", "equal", "different", "unverifiable", "records", "bytes")
        with self._database.read() as connection:
            return tuple(
                # Some databases return a sum as a decimal number.
                VerificationSummary(**{**row, **{name: int(row[name]) for name in numbers}})
                for row in connection.execute(query).mappings()
            )


def _is_newest_comparison(since: datetime, flow: str | None) -> ColumnElement[bool]:
    """True for the latest conclusive verification of its partition.

    No window function: the index on (flow, topic, partition, finished_at) finds it without sorting.
    """
    columns, later = _VERIFICATIONS.c, _VERIFICATIONS.alias("later")
    chosen = [columns.finished_at >= since, _says_something(_VERIFICATIONS)]
    if flow is not None:
        chosen.append(columns.flow == flow)
    followed = (
        select(later.c.id)
        .where(
            later.c.flow == columns.flow,
            later.c.topic == columns.topic,
            later.c.partition == columns.partition,
            tuple_(later.c.finished_at, later.c.id) > tuple_(columns.finished_at, columns.id),
            _says_something(later),
        )
        .exists()
    )
    return and_(*chosen, ~followed)


def _says_something(verifications: FromClause) -> ColumnElement[bool]:
    """True for conclusive results: a sample or a comparison by state counts only if it found a difference."""
    columns = verifications.c
    whole = columns.mode.in_(WHOLE_RECORDS)
    return columns.verdict.in_(("equal", "different")) & (whole | (columns.verdict == "different"))
