"""Which version the ledger's tables have, and whether anything is to be done about it."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from mirror_lib.ledger.database import VERSION_TABLE, Database

#: The newest of `migrations/versions`.
HEAD = "0017"


def upgrade(database: Database) -> None:
    """Bring the tables to this version; does nothing, and takes no lock, when they are already there.

    Safe when several processes do it at once.

    Raises:
        LedgerError: the database does not answer, or a newer version of this project made the tables.
    """
    with database.read() as connection:
        if _versions(connection) == [HEAD]:
            return
    # Alembic and the migrations themselves are half a second of imports, which is more than a run that finds nothing.
    from mirror_lib.ledger.migration import migrate

    migrate(database)


def _versions(connection: Connection) -> list[str]:
    if not inspect(connection).has_table(VERSION_TABLE):
        return []
    return list(connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars())
