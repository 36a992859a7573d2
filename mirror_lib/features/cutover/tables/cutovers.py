"""The tables of cutovers: definitions, attempts at steps, cuts, and handed-over topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Table, delete, select, update

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.cutover_rows import CutoverRow, CutRow, HandedOverRow
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.writing import now, upsert

_CUTOVERS: Table = METADATA.tables["cutover"]
_STEPS: Table = METADATA.tables["cutover_step"]
_CUTS: Table = METADATA.tables["cut"]
_HANDED_OVER: Table = METADATA.tables["handed_over_topic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoverStepRow:
    """One attempt at one step."""

    cutover: str
    step: str
    #: From 1.
    attempt: int
    #: One of `features.cutover.model.StepState`.
    state: str
    #: The gates that were checked, as `features.cutover.model.Gate.to_dict` returns them.
    gates: list[dict[str, Any]]
    #: What the step measured and did.
    facts: Mapping[str, Any]
    by: str
    started_at: datetime
    finished_at: datetime | None = None
    #: `MirrorError.attributes()`.
    error: Mapping[str, Any] | None = None


class Cutovers:
    """Cutovers and their history. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def create(self, row: CutoverRow) -> None:
        """Store a new cutover.

        Raises:
            LedgerError: a cutover with this name exists.
        """
        with self._database.write() as connection:
            if connection.scalar(select(_CUTOVERS.c.name).where(_CUTOVERS.c.name == row.name)) is not None:
                raise LedgerError(f"cutover {row.name!r} already exists.", action="Use another name.")
            connection.execute(_CUTOVERS.insert().values(asdict(row)))

    def find(self, name: str) -> CutoverRow | None:
        """One cutover; None if there is none with this name."""
        with self._database.read() as connection:
            found = connection.execute(select(_CUTOVERS).where(_CUTOVERS.c.name == name)).mappings().one_or_none()
            return None if found is None else CutoverRow(**found)

    def newest(self, flow: str | None = None, limit: int = 100) -> tuple[CutoverRow, ...]:
        """The latest cutovers, latest first: of a flow, or all."""
        query = select(_CUTOVERS).order_by(_CUTOVERS.c.created_at.desc(), _CUTOVERS.c.name).limit(limit)
        if flow is not None:
            query = query.where(_CUTOVERS.c.flow == flow)
        with self._database.read() as connection:
            return tuple(CutoverRow(**row) for row in connection.execute(query).mappings())

    def move(self, name: str, *, state: str, step: str) -> None:
        """Record the state and step of a cutover."""
        changed = {"state": state, "step": step, "updated_at": now()}
        with self._database.write() as connection:
            connection.execute(update(_CUTOVERS).where(_CUTOVERS.c.name == name).values(changed))

    def save_step(self, row: CutoverStepRow) -> None:
        """Insert or replace an attempt at a step."""
        with self._database.write() as connection:
            upsert(connection, _STEPS, [row])

    def steps(self, name: str) -> tuple[CutoverStepRow, ...]:
        """All attempts at a cutover's steps, in the order of their start."""
        return tuple(self.steps_of((name,))[name])

    def steps_of(self, names: Collection[str]) -> dict[str, list[CutoverStepRow]]:
        """As `steps` for each of these cutovers, by name."""
        query = select(_STEPS).where(_STEPS.c.cutover.in_(names)).order_by(_STEPS.c.started_at, _STEPS.c.attempt)
        found: dict[str, list[CutoverStepRow]] = {name: [] for name in names}
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                found[row["cutover"]].append(CutoverStepRow(**row))
        return found

    def save_cuts(self, name: str, rows: Sequence[CutRow]) -> None:
        """Store the cuts of a cutover's partitions; replaces all earlier ones."""
        with self._database.write() as connection:
            connection.execute(delete(_CUTS).where(_CUTS.c.cutover == name))
            upsert(connection, _CUTS, rows)

    def hand_over(
        self, rows: Sequence[HandedOverRow], *, take_back_from: str | None = None, topics: Collection[str] = ()
    ) -> None:
        """Exclude topics from flows, and in the same transaction let another flow copy some topics again.

        Args:
            rows: the topics that are handed over.
            take_back_from: the flow that copies again.
            topics: topics on its source.
        """
        with self._database.write() as connection:
            if take_back_from is not None:
                chosen = (_HANDED_OVER.c.flow == take_back_from) & _HANDED_OVER.c.topic.in_(list(topics))
                connection.execute(delete(_HANDED_OVER).where(chosen))
            upsert(connection, _HANDED_OVER, rows)
