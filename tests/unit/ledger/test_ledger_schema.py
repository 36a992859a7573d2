"""Creating and upgrading the ledger's tables, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from mirror_lib.errors import LedgerError
from mirror_lib.ledger import migration, schema
from mirror_lib.ledger.database import VERSION_TABLE, Database
from mirror_lib.ledger.store import Ledger
from tests.support.fresh_imports import loaded_after
from tests.support.ledger.tables import METADATA

TABLES = {*METADATA.tables, VERSION_TABLE}


def _tables(database: Database) -> set[str]:
    with database.read() as connection:
        return set(inspect(connection).get_table_names())


def _downgrade(database: Database, revision: str) -> None:
    with database.write() as connection:
        config = migration.configuration()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


@pytest.fixture
def empty_database(database_url: str) -> Iterator[Database]:
    """A database without tables."""
    with closing(Database.open(database_url)) as database:
        yield database


@pytest.fixture
def database(empty_database: Database) -> Database:
    """A database with the ledger's tables."""
    schema.upgrade(empty_database)
    return empty_database


def test_the_migrations_make_exactly_the_tables_of_the_models(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_server_default": True}
        )
        assert compare_metadata(context, METADATA) == []
        # It does not look at checks and keys, and a later migration changes constraints by name.
        inspector = inspect(connection)
        for table in METADATA.sorted_tables:
            expected = {str(each.name) for each in table.constraints}
            found = {
                str(inspector.get_pk_constraint(table.name)["name"]),
                *(str(each["name"]) for each in inspector.get_check_constraints(table.name)),
                *(str(each["name"]) for each in inspector.get_foreign_keys(table.name)),
            }
            assert found == expected


def test_a_database_can_go_back_to_nothing_and_up_again(database: Database) -> None:
    _downgrade(database, "base")
    assert _tables(database) == {VERSION_TABLE}

    schema.upgrade(database)

    assert _tables(database) == TABLES


def test_several_processes_may_migrate_at_the_same_time(database_url: str, empty_database: Database) -> None:
    """The first scheduled run of every flow starts at the same minute. Each has connections of its own."""

    def migrate(_: int) -> None:
        with Ledger.open(database_url) as ledger:
            ledger.migrate()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, range(4)))

    assert _tables(empty_database) == TABLES


def test_other_tables_of_a_shared_database_are_left_alone(empty_database: Database) -> None:
    """Airflow's own tables and its Alembic version may be in the same database."""
    with empty_database.write() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('of airflow')"))

    schema.upgrade(empty_database)

    with empty_database.read() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "of airflow"


def test_tables_of_an_unknown_version_are_refused(database: Database) -> None:
    for version, said in {"9999": "a newer version of this project", "0008": "a version before 0.1.0 of this"}.items():
        with database.write() as connection:
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))

        with pytest.raises(LedgerError, match=rf"{said}.* \({version}\)") as caught:
            schema.upgrade(database)

        assert caught.value.action


def test_the_version_that_is_looked_for_is_the_newest_migration() -> None:
    scripts = ScriptDirectory.from_config(migration.configuration())

    assert scripts.get_heads() == [schema.HEAD]


def test_tables_that_are_up_to_date_cost_no_import_of_alembic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    with closing(Ledger.open(url)) as ledger:
        ledger.migrate()
    opens = (
        f"from mirror_lib.ledger.store import Ledger; ledger = Ledger.open({url!r}); ledger.migrate(); ledger.close()"
    )

    assert loaded_after(opens, ["alembic"]) == []
