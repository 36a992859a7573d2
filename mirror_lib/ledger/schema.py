"""The version of the ledger's tables, and their migration if it is necessary."""

from __future__ import annotations

from sqlalchemy import Connection, column, inspect, select
from sqlalchemy import table as sql_table

from mirror_lib.ledger.database import VERSION_TABLE, Database
from mirror_lib.ledger.feature_tables import Migrations

#: The latest of `migrations/versions`.
HEAD = "0021"


def upgrade(database: Database, of_feature: Migrations | None = None) -> None:
    """Migrate the tables to this version; does nothing, and takes no lock, if they are up to date.

    Safe if several processes do it at once.

    Args:
        of_feature: migrate the tables of a feature instead of the core's.

    Raises:
        LedgerError: the database does not respond, or its tables belong to a newer version of this project.
    """
    head, table = (HEAD, VERSION_TABLE) if of_feature is None else (of_feature.head, of_feature.version_table)
    with database.read() as connection:
        if _versions(connection, table) == [head]:
            return
    # Importing Alembic and the migrations takes half a second, which is more than an idle run.
    from mirror_lib.ledger.migration import migrate

    migrate(database, of_feature)


def _versions(connection: Connection, table: str) -> list[str]:
    if not inspect(connection).has_table(table):
        return []
    return list(connection.execute(select(column("version_num")).select_from(sql_table(table))).scalars())
