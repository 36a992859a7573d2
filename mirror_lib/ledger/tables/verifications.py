"""Reads and writes the table `verification`, as metrics read it; the feature `verify` writes it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, and_, or_

from mirror_lib.ledger.models import METADATA

_POSITION: Table = METADATA.tables["position"]
_VERIFICATION: Table = METADATA.tables["verification"]
#: Modes that compare every record from one offset to another, as `VerifyMode` names them.
WHOLE_RECORDS = ("full", "recent")


def is_of_position() -> ColumnElement[bool]:
    """The condition that joins a verification with the position of its partition."""
    columns, positions = _VERIFICATION.c, _POSITION.c
    return and_(
        positions.flow == columns.flow,
        positions.topic == columns.topic,
        positions.partition == columns.partition,
    )


def is_of_present_copy() -> ColumnElement[bool]:
    """The condition that a verification is about the copy of the joined position, if there is one."""
    columns, positions = _VERIFICATION.c, _POSITION.c
    return or_(positions.flow.is_(None), columns.copy.is_not_distinct_from(positions.copy))
