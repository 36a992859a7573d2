"""Reads and writes the table `known_topics`: a topic that is not among them was created since the flow's last run."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, Table, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import KnownTopicsRow
from mirror_lib.ledger.tables.writing import upsert

_KNOWN: Table = METADATA.tables["known_topics"]


def save(connection: Connection, flow: str, topics: Collection[str]) -> None:
    """Replace the known topics of a flow's source."""
    upsert(connection, _KNOWN, [KnownTopicsRow(flow=flow, topics="\n".join(sorted(topics)))])


def of_flow(connection: Connection, flow: str) -> frozenset[str] | None:
    """The known topics; None if no run has noted any."""
    found: str | None = connection.scalar(select(_KNOWN.c.topics).where(_KNOWN.c.flow == flow))
    return None if found is None else frozenset(found.split("\n")) - {""}
