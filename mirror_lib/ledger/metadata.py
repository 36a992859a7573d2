"""Shared by all tables of the ledger: names of constraints, column types for Python types, tables for rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_origin, get_type_hints

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
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

from mirror_lib.type_hints import kind_of


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


def table_of(
    row: type,
    name: str,
    *items: SchemaItem,
    keys: Sequence[str],
    part_of: str | None = None,
    texts: Sequence[str] = (),
    stored: Mapping[str, str] | None = None,
) -> Table:
    """The table of a row's dataclass: a column for each field. What may be None may be NULL.

    Args:
        items: constraints and indexes.
        keys: the fields of the primary key, in their order.
        part_of: the column (`table.column`) that the first key names; its rows take these along when they are deleted.
        texts: the fields with texts of any length.
        stored: former names in SQL, by field.
    """
    former = stored or {}
    hints = get_type_hints(row)
    references = [] if part_of is None else [ForeignKey(part_of, ondelete="CASCADE")]
    first, *others = keys
    columns = [key(first, _stored_kind(hints[first])[0], *references, stored=former.get(first))]
    columns += [key(each, _stored_kind(hints[each])[0], stored=former.get(each)) for each in others]
    for field in (each for each in hints if each not in keys):
        kind, may_be_null = _stored_kind(hints[field])
        made = optional(field, StoredText() if field in texts else kind, stored=former.get(field))
        # The ledger sets the time of storing.
        made.nullable = may_be_null and field != "updated_at"
        columns.append(made)
    return Table(name, METADATA, *columns, *items)


def _stored_kind(hint: Any) -> tuple[type | TypeEngine[Any], bool]:
    """The kind of a field's values, and whether they may be None."""
    kind, may_be_null = kind_of(hint)
    if get_origin(kind) is not None:
        return StoredJson(none_as_null=may_be_null), may_be_null
    return (str if issubclass(kind, str) else kind), may_be_null


def column(name: str, kind: type | TypeEngine[Any]) -> Column[Any]:
    """A NOT NULL column of a Python or SQL type."""
    return Column(name, _sql_type(kind), nullable=False)


def optional(name: str, kind: type | TypeEngine[Any], *, stored: str | None = None) -> Column[Any]:
    """A column that may be NULL.

    Args:
        stored: its name in SQL, if that is a former name.
    """
    return Column(stored or name, _sql_type(kind), key=name, nullable=True)


def key(name: str, kind: type | TypeEngine[Any], *references: ForeignKey, stored: str | None = None) -> Column[Any]:
    """A column of the primary key, without auto-increment; `stored` as in `optional`."""
    return Column(stored or name, _sql_type(kind), *references, key=name, primary_key=True, autoincrement=False)


def selected(table: Table) -> list[ColumnElement[Any]]:
    """All columns of a table, under the names of their row's fields."""
    return [each if each.name == each.key else each.label(each.key) for each in table.columns]


def _sql_type(kind: type | TypeEngine[Any]) -> TypeEngine[Any]:
    return _TYPES[kind] if isinstance(kind, type) else kind
