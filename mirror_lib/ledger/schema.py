"""The version of the ledger's tables, and their migration if it is necessary."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from mirror_lib.ledger.database import VERSION_TABLE, Database

#: The latest of `migrations/versions`.
HEAD = "0021"


def upgrade(database: Database) -> None:
    """Migrate the tables to this version; does nothing, and takes no lock, if they are up to date.

    Safe if several processes do it at once.

    Raises:
        LedgerError: the database does not respond, or its tables belong to a newer version of this project.
    """
    with database.read() as connection:
        if _versions(connection) == [HEAD]:
            return
    # Importing Alembic and the migrations takes half a second, which is more than an idle run.
    from mirror_lib.ledger.migration import migrate

    migrate(database)


def _versions(connection: Connection) -> list[str]:
    if not inspect(connection).has_table(VERSION_TABLE):
        return []
    return list(connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars())
