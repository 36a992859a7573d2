"""Tables that features make by migrations of their own.

Their names begin with `mirror_` and the feature's name, and the version of the tables is in `mirror_NAME_version`. So
the core finds them in the database itself, also if the feature is not installed any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, TableClause, column, inspect, table

from mirror_lib.ledger.database import VERSION_TABLE
from mirror_lib.ledger.metadata import StoredString

_PREFIX, _VERSION = "mirror_", "_version"


@dataclass(frozen=True, slots=True)
class Migrations:
    """The migrations of a feature: revisions of Alembic, as `examples/feature` has them."""

    feature: str
    #: `package:folder`, with a module for each revision.
    folder: str
    #: The latest revision.
    head: str

    def __post_init__(self) -> None:
        if self.version_table == VERSION_TABLE:
            raise ValueError(f"{VERSION_TABLE} is the version of the core's tables")

    @property
    def version_table(self) -> str:
        """The table with the revision of the feature's tables."""
        return f"{_PREFIX}{self.feature}{_VERSION}"

    @property
    def prefix(self) -> str:
        """How the names of the feature's tables begin."""
        return f"{_PREFIX}{self.feature}_"


def features_with_tables(connection: Connection) -> tuple[str, ...]:
    """The names of features that have made tables, installed or not."""
    return tuple(
        name.removeprefix(_PREFIX).removesuffix(_VERSION)
        for name in sorted(inspect(connection).get_table_names())
        if name.startswith(_PREFIX) and name.endswith(_VERSION) and name != VERSION_TABLE
    )


def tables_with_flows(connection: Connection) -> Iterator[TableClause]:
    """Tables of features whose rows belong to a flow: they have a column `flow`."""
    prefixes = tuple(f"{_PREFIX}{name}_" for name in features_with_tables(connection))
    inspector = inspect(connection)
    for name in inspector.get_table_names() if prefixes else ():
        if name.startswith(prefixes) and any(each["name"] == "flow" for each in inspector.get_columns(name)):
            yield with_flow(name)


def with_flow(name: str) -> TableClause:
    """A table without its other columns, which only a feature declares: it may not be installed."""
    return table(name, column("flow", StoredString()))
