"""Runs the migrations of this package with Alembic: imported only if there are any to run."""

from __future__ import annotations

import threading

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.database import VERSION_TABLE, Database
from mirror_lib.ledger.feature_tables import Migrations

#: Any number that other programs on the same PostgreSQL are unlikely to lock.
_ADVISORY_LOCK = 0x6D6972726F72
#: Alembic keeps its state in module variables.
_one_at_a_time = threading.Lock()


def migrate(database: Database, of_feature: Migrations | None = None) -> None:
    """Migrate the tables to this version; does nothing, and takes no lock, if they are up to date.

    Safe if several processes do it at once.

    Args:
        of_feature: as in `schema.upgrade`.

    Raises:
        LedgerError: the database does not respond, or its tables belong to a newer version of this project.
    """
    config = configuration(of_feature)
    with database.read() as connection:
        if _is_current(connection, config, database.shown):
            return
    with _one_at_a_time, database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        if not _is_current(connection, config, database.shown):
            config.attributes["connection"] = connection
            before = set(inspect(connection).get_table_names())
            command.upgrade(config, "head")
            if of_feature is not None:
                _check_names(set(inspect(connection).get_table_names()) - before, of_feature)


def configuration(of_feature: Migrations | None = None) -> Config:
    """Alembic's configuration with the location of the migrations."""
    config = Config()
    # Located through the package, so that it works from an installed wheel.
    config.set_main_option("script_location", "mirror_lib.ledger:migrations")
    config.set_main_option("path_separator", "newline")
    if of_feature is not None:
        config.set_main_option("version_locations", of_feature.folder)
    config.attributes["version_table"] = VERSION_TABLE if of_feature is None else of_feature.version_table
    config.attributes["whose"] = "this project" if of_feature is None else f"the feature {of_feature.feature}"
    return config


def _check_names(made: set[str], of_feature: Migrations) -> None:
    """Refuse tables that the core would not find again, when the rows of a flow are set aside."""
    for name in sorted(made):
        if not name.startswith(of_feature.prefix):
            raise LedgerError(
                f"the feature {of_feature.feature} makes the table {name}, whose name does not begin with "
                f"{of_feature.prefix}.",
                action="Report this to the author of the feature; nothing was changed.",
            )


def _is_current(connection: Connection, config: Config, shown: str) -> bool:
    scripts = ScriptDirectory.from_config(config)
    context = MigrationContext.configure(connection, opts={"version_table": config.attributes["version_table"]})
    present = set(context.get_current_heads())
    known = {script.revision for script in scripts.walk_revisions()}
    if not present <= known:
        version = "a newer version"
        if config.attributes["version_table"] == VERSION_TABLE and max(present) < min(known):
            version = "a version before 0.1.0"
        raise LedgerError(
            f"the ledger {shown} was created by {version} of {config.attributes['whose']} "
            f"({', '.join(sorted(present - known))}).",
            action="Use that version, or another ledger.",
        )
    return present == set(scripts.get_heads())
