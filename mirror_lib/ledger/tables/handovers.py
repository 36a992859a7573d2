"""What runs read of cutovers: topics that a flow no longer copies, and where. The feature `cutover` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Table, select

from mirror_lib.ledger.cutover_rows import CutRow, HandedOverRow
from mirror_lib.ledger.database import Database
from mirror_lib.ledger.models import METADATA

_CUTOVERS: Table = METADATA.tables["cutover"]
_STEPS: Table = METADATA.tables["cutover_step"]
_CUTS: Table = METADATA.tables["cut"]
_HANDED_OVER: Table = METADATA.tables["handed_over_topic"]


class HandoverRecords:
    """Topics that cutovers have handed over. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cuts(self, name: str) -> tuple[CutRow, ...]:
        """The cuts of a cutover's partitions, by topic and partition."""
        query = select(_CUTS).where(_CUTS.c.cutover == name).order_by(_CUTS.c.topic, _CUTS.c.partition)
        with self._database.read() as connection:
            return tuple(CutRow(**row) for row in connection.execute(query).mappings())

    def fences(self, flow: str) -> list[Mapping[str, Any]]:
        """The ACLs with which cutovers of a flow fence writers on its source now, as `Fenced.to_facts` returns them."""
        query = (
            select(_STEPS.c.facts)
            .join(_CUTOVERS, _CUTOVERS.c.name == _STEPS.c.cutover)
            .where(_CUTOVERS.c.flow == flow, _STEPS.c.step == "freeze", _CUTOVERS.c.state != "rolled-back")
        )
        with self._database.read() as connection:
            return [acl for facts in connection.scalars(query) for acl in facts.get("fence", ())]

    def handed_over(self, flow: str | None = None) -> tuple[HandedOverRow, ...]:
        """The topics that a flow, or each flow, no longer copies."""
        query = select(_HANDED_OVER).order_by(_HANDED_OVER.c.flow, _HANDED_OVER.c.topic)
        if flow is not None:
            query = query.where(_HANDED_OVER.c.flow == flow)
        with self._database.read() as connection:
            return tuple(HandedOverRow(**row) for row in connection.execute(query).mappings())

    def moved_topics(self, flows: Iterable[str]) -> frozenset[str]:
        """Topics, by their names on either side, that cutovers of these flows have cut or that any flow handed over."""
        cut = select(_CUTS.c.topic, _CUTS.c.target_topic).join(_CUTOVERS, _CUTOVERS.c.name == _CUTS.c.cutover)
        away = select(_HANDED_OVER.c.topic, _HANDED_OVER.c.target_topic)
        with self._database.read() as connection:
            rows = connection.execute(cut.where(_CUTOVERS.c.flow.in_(list(flows))).union(away))
            return frozenset(name for row in rows for name in row)
