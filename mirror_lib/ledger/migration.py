"""Runs the migrations of this package with Alembic: imported only if there are any to run."""

from __future__ import annotations

import threading

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.database import VERSION_TABLE, Database

#: Any number that other programs on the same PostgreSQL are unlikely to lock.
_ADVISORY_LOCK = 0x6D6972726F72
#: Alembic keeps its state in module variables.
_one_at_a_time = threading.Lock()


def migrate(database: Database) -> None:
    """Migrate the tables to this version; does nothing, and takes no lock, if they are up to date.

    Safe if several processes do it at once.

    Raises:
        LedgerError: the database does not respond, or its tables belong to a newer version of this project.
    """
    scripts = ScriptDirectory.from_config(configuration())
    with database.read() as connection:
        if _is_current(connection, scripts, database.shown):
            return
    with _one_at_a_time, database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        if not _is_current(connection, scripts, database.shown):
            config = configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def configuration() -> Config:
    """Alembic's configuration with the location of the migrations."""
    config = Config()
    # Located through the package, so that it works from an installed wheel.
    config.set_main_option("script_location", "mirror_lib.ledger:migrations")
    config.set_main_option("path_separator", "os")
    return config


def _is_current(connection: Connection, scripts: ScriptDirectory, shown: str) -> bool:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    present = set(context.get_current_heads())
    known = {script.revision for script in scripts.walk_revisions()}
    if not present <= known:
        whose = "a version before 0.1.0" if max(present) < min(known) else "a newer version"
        raise LedgerError(
            f"the ledger {shown} was created by {whose} of this project ({', '.join(sorted(present - known))}).",
            action="Use that version, or another ledger.",
        )
    return present == set(scripts.get_heads())
