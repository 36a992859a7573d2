"""What all tables of the ledger share: how their constraints are named, and which column holds which Python type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

# Not SQLAlchemy's ORM: nothing here maps objects, and it takes longer to start than a run that finds nothing.
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    LargeBinary,
    MetaData,
    String,
    Text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine


class UtcDateTime(TypeDecorator[datetime]):
    """Timezone-aware UTC in Python, whatever the database keeps: SQLite has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive times: nobody knows which instant they mean."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Say of what comes back that it is UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _storable(text: str) -> str:
    """What every database takes: PostgreSQL refuses the character NUL, and none knows half of a surrogate pair."""
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
    """Texts from anywhere: names, and what others say. What no database takes is replaced."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """As it is stored."""
        return None if value is None else _storable(value)


class StoredText(StoredString):
    """The same, of any length."""

    impl = Text
    cache_ok = True


class StoredJson(TypeDecorator[Any]):
    """JSON whose texts are stored as those of `StoredString` are."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """As it is stored."""
        return _storable_within(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        """Escapes of half a surrogate pair, which earlier versions have stored, would break every answer with them."""
        return _storable_within(value)


#: All tables, once `models` is imported. Names of constraints are fixed so that later migrations can name them.
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
    """A column that always has a value, of a Python type or of one of SQL."""
    return Column(name, _sql_type(kind), nullable=False)


def optional(name: str, kind: type | TypeEngine[Any]) -> Column[Any]:
    """A column that may be NULL."""
    return Column(name, _sql_type(kind), nullable=True)


def key(name: str, kind: type, *references: ForeignKey) -> Column[Any]:
    """A column of the primary key. No database counts it up."""
    return Column(name, _sql_type(kind), *references, primary_key=True, autoincrement=False)


def _sql_type(kind: type | TypeEngine[Any]) -> TypeEngine[Any]:
    return _TYPES[kind] if isinstance(kind, type) else kind
