"""Stores many rows in one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Executable, Table
from sqlalchemy.sql.base import ReadOnlyColumnCollection

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from sqlalchemy.dialects import postgresql, sqlite


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


#: The columns of a table, or of the row to insert.
Columns = ReadOnlyColumnCollection[str, Any]
#: Whether the present row is to be replaced by the new one.
Replaces = Callable[[Columns, Columns], ColumnElement[bool]]


def upsert(
    connection: Connection, table: Table, rows: Iterable[DataclassInstance], *, where: Replaces | None = None
) -> None:
    """Insert rows, or replace those with the same primary key; set `updated_at` if it is None.

    The last one wins if rows share a key.

    Args:
        connection: in a transaction.
        table: the table.
        rows: its new rows.
        where: which present rows are replaced; None for all.
    """
    values = [_values(row) for row in rows]
    if not values:
        return
    connection.execute(_upsert_statement(connection.dialect.name, table, where), values)


def insert_new(connection: Connection, table: Table, row: DataclassInstance) -> None:
    """Insert a row unless there is one with the same primary key."""
    statement = _insert(connection.dialect.name, table).on_conflict_do_nothing()
    connection.execute(statement, [_values(row)])


@cache
def _upsert_statement(dialect: str, table: Table, where: Replaces | None) -> Executable:
    # Building it takes longer than storing a few rows with it.
    insert = _insert(dialect, table)
    replacing: Executable = insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={column.key: insert.excluded[column.key] for column in table.columns if not column.primary_key},
        where=None if where is None else where(table.columns, insert.excluded),
    )
    return replacing


def _insert(dialect: str, table: Table) -> postgresql.Insert | sqlite.Insert:
    # Importing the unused dialect takes longer than storing a few rows.
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def _values(row: DataclassInstance) -> dict[str, Any]:
    # `asdict` would copy every value, which takes longer than storing a hundred thousand rows.
    values = {each.name: getattr(row, each.name) for each in fields(row)}
    if values.get("updated_at", ...) is None:
        values["updated_at"] = now()
    return values
