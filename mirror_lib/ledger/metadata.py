"""Shared by all tables of the ledger: names of constraints, and column types for Python types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

# Not SQLAlchemy's ORM: no objects are mapped, and it takes longer to load than an idle run.
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine


class UtcDateTime(TypeDecorator[datetime]):
    """Timezone-aware UTC in Python, for every database: SQLite has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Reject naive times, which are ambiguous."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Set the time zone of loaded values to UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _storable(text: str) -> str:
    """A text that every database accepts: PostgreSQL rejects the NUL character, and none accepts a lone surrogate."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _storable_within(value: Any) -> Any:
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, Mapping):
        return {_storable_within(key): _storable_within(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_storable_within(each) for each in value]
    return value


class StoredString(TypeDecorator[str]):
    """Texts from other systems, such as names and messages. Characters that no database accepts are replaced."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """The stored form."""
        return None if value is None else _storable(value)


class StoredText(StoredString):
    """As `StoredString`, of any length."""

    impl = Text
    cache_ok = True


class StoredJson(TypeDecorator[Any]):
    """JSON whose texts are stored as in `StoredString`."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """The stored form."""
        return _storable_within(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """Replace escapes of lone surrogates, which earlier versions stored: they would break every response."""
        return _storable_within(value)


#: All tables, once `models` is imported. Constraints have fixed names so that later migrations can name them.
METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
_TYPES: Mapping[type, TypeEngine[Any]] = {
    bool: Boolean(),
    int: BigInteger(),
    float: Double(),
    str: StoredString(),
    bytes: LargeBinary(),
    datetime: UtcDateTime(),
}


def column(name: str, kind: type | TypeEngine[Any]) -> Column[Any]:
    """A NOT NULL column of a Python or SQL type."""
    return Column(name, _sql_type(kind), nullable=False)


def optional(name: str, kind: type | TypeEngine[Any], *, stored: str | None = None) -> Column[Any]:
    """A column that may be NULL.

    Args:
        stored: its name in SQL, if that is a former name.
    """
    return Column(stored or name, _sql_type(kind), key=name, nullable=True)


def key(name: str, kind: type, *references: ForeignKey, stored: str | None = None) -> Column[Any]:
    """A column of the primary key, without auto-increment; `stored` as in `optional`."""
    return Column(stored or name, _sql_type(kind), *references, key=name, primary_key=True, autoincrement=False)


def selected(table: Table) -> list[ColumnElement[Any]]:
    """All columns of a table, under the names of their row's fields."""
    return [each if each.name == each.key else each.label(each.key) for each in table.columns]


def _sql_type(kind: type | TypeEngine[Any]) -> TypeEngine[Any]:
    return _TYPES[kind] if isinstance(kind, type) else kind
