"""A table of this feature in the ledger. By its name, `mirror_owners_...`, the core finds the rows of a flow."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Table, select

from mirror_lib.ledger.feature_tables import Migrations
from mirror_lib.ledger.metadata import column, key
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.writing import upsert

MIGRATIONS = Migrations("owners", "mirror_owners:migrations", head="0001")
_OWNERS = Table("mirror_owners_owner", METADATA, key("flow", str), key("topic", str), column("owner", str))


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """The owner of a topic, by name."""

    flow: str
    topic: str
    owner: str


class Owners:
    """Owners that users have named. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        ledger.migrate(MIGRATIONS)
        self._database = ledger.database

    def save(self, row: OwnerRow) -> None:
        """Insert or replace an owner."""
        with self._database.write() as connection:
            upsert(connection, _OWNERS, [row])

    def of_flow(self, flow: str) -> tuple[OwnerRow, ...]:
        """The owners of a flow's topics."""
        with self._database.read() as connection:
            found = connection.execute(select(_OWNERS).where(_OWNERS.c.flow == flow)).mappings()
            return tuple(OwnerRow(**row) for row in found)
