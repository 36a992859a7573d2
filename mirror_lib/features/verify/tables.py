"""The table `verification`: comparisons, and up to where each partition was found equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, Table, and_, bindparam, delete, func, or_, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.verifications import WHOLE_RECORDS, is_of_position, is_of_present_copy
from mirror_lib.ledger.tables.writing import upsert

_POSITION: Table = METADATA.tables["position"]
_VERIFICATION: Table = METADATA.tables["verification"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRow:
    """The result of one verification for one partition, or why there is none."""

    #: Id of the verification, which has a row for each of its partitions.
    id: str
    flow: str
    topic: str
    partition: int
    target_topic: str
    #: One of `VerifyMode`: `full`, `sample`, `recent`, `state`.
    mode: str
    #: One of `Verdict`: `equal`, `different`, `unverifiable`.
    verdict: str
    reason: str | None = None
    detail: str | None = None
    #: The compared range on either side; of a sample, the outermost offsets. None: nothing was compared.
    source_first: int | None = None
    source_next: int | None = None
    target_first: int | None = None
    target_next: int | None = None
    #: Number of equal records.
    records: int = 0
    #: Bytes of the source's log that were read.
    bytes: int = 0
    #: See `docs/verification.md`; None if a budget ended the comparison.
    digest: str | None = None
    difference_count: int = 0
    #: The first differences, as `Difference.to_dict` returns them.
    differences: list[dict[str, Any]] | None = None
    #: The copy that was compared, as in the position.
    copy: str | None = None
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRow:
    """The offset up to which a partition was found equal, and when."""

    topic: str
    partition: int
    #: The next offset to verify on either side.
    source_next: int
    target_next: int
    verified_at: datetime


class Verifications:
    """Verifications of flows. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def save(self, rows: Iterable[VerificationRow]) -> None:
        """Insert or replace rows.

        A row without compared records, which only confirms that a partition still ends where it was equal, replaces
        the previous such row: an idle flow would otherwise add one per partition every time.
        """
        rows = list(rows)
        with self._database.write() as connection:
            _forget_confirmations(connection, [row for row in rows if _confirms(row)])
            upsert(connection, _VERIFICATION, rows)

    def newest(self, flow: str, limit: int = 100) -> tuple[VerificationRow, ...]:
        """The latest rows of a flow, latest first, those of one verification by partition."""
        columns = _VERIFICATION.c
        order = (columns.started_at.desc(), columns.id, columns.topic, columns.partition)
        return self._rows(select(_VERIFICATION).where(columns.flow == flow).order_by(*order).limit(limit))

    def of_id(self, verification_id: str) -> tuple[VerificationRow, ...]:
        """All rows of one verification, by partition."""
        columns = _VERIFICATION.c
        order = (columns.topic, columns.partition)
        return self._rows(select(_VERIFICATION).where(columns.id == verification_id).order_by(*order))

    def verified_up_to(self, flow: str) -> tuple[VerifiedRow, ...]:
        """Up to where each partition was found equal since its last difference, in the copy of its present position.

        Samples do not count, since they skip the records in between, nor do comparisons by state, which compare only
        the latest record of each key. Partitions without a result are missing.
        """
        columns = _VERIFICATION.c
        last_difference = (
            select(columns.topic, columns.partition, func.max(columns.finished_at).label("at"))
            .where(columns.flow == flow, columns.verdict == "different", columns.mode != "state")
            .group_by(columns.topic, columns.partition)
            .subquery("last_difference")
        )
        same_partition = and_(
            last_difference.c.topic == columns.topic, last_difference.c.partition == columns.partition
        )
        rank = func.row_number().over(
            partition_by=(columns.topic, columns.partition),
            order_by=(columns.source_next.desc(), columns.finished_at.desc()),
        )
        equal = (
            select(
                columns.topic,
                columns.partition,
                columns.source_next,
                columns.target_next,
                columns.finished_at,
                rank.label("place"),
            )
            .outerjoin(last_difference, same_partition)
            .outerjoin(_POSITION, is_of_position())
            .where(
                columns.flow == flow,
                is_of_present_copy(),
                columns.verdict == "equal",
                columns.mode.in_(WHOLE_RECORDS),
                columns.source_next.is_not(None),
                or_(last_difference.c.at.is_(None), columns.finished_at > last_difference.c.at),
            )
            .subquery("equal")
        )
        found = select(equal).where(equal.c.place == 1).order_by(equal.c.topic, equal.c.partition)
        with self._database.read() as connection:
            return tuple(
                VerifiedRow(
                    topic=row["topic"],
                    partition=row["partition"],
                    source_next=row["source_next"],
                    target_next=row["target_next"],
                    verified_at=row["finished_at"],
                )
                for row in connection.execute(found).mappings()
            )

    def _rows(self, query: Select[Any]) -> tuple[VerificationRow, ...]:
        with self._database.read() as connection:
            return tuple(VerificationRow(**row) for row in connection.execute(query).mappings())


def _confirms(row: VerificationRow) -> bool:
    return (
        row.verdict == "equal"
        and row.source_next is not None
        and (row.source_first, row.target_first) == (row.source_next, row.target_next)
    )


def _forget_confirmations(connection: Connection, rows: Sequence[VerificationRow]) -> None:
    columns = _VERIFICATION.c
    former = delete(_VERIFICATION).where(
        columns.flow == bindparam("of_flow"),
        columns.topic == bindparam("of_topic"),
        columns.partition == bindparam("of_partition"),
        columns.verdict == "equal",
        columns.source_first == columns.source_next,
        columns.target_first == columns.target_next,
    )
    if rows:
        values = [{"of_flow": row.flow, "of_topic": row.topic, "of_partition": row.partition} for row in rows]
        connection.execute(former, values)
