"""`offsets.group_standing` in SQL: the positions of groups that count."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, or_

from mirror_lib.offsets.group_standing import NOT_THIS_FLOWS


def is_own(reason: ColumnElement[str]) -> ColumnElement[bool]:
    """True if the flow replicates the topic of a position with this reason."""
    return or_(reason.is_(None), reason.not_in(sorted(NOT_THIS_FLOWS)))


def is_behind(reason: ColumnElement[str]) -> ColumnElement[bool]:
    """True if a position with this reason is not in sync."""
    return and_(reason.is_not(None), reason.not_in(sorted(NOT_THIS_FLOWS)))
