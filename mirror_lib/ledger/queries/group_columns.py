"""`offsets.group_standing` in SQL: which positions of groups count."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, or_

from mirror_lib.offsets import NOT_THIS_FLOWS


def is_own(reason: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a position with this reason is the flow's business."""
    return or_(reason.is_(None), reason.not_in(sorted(NOT_THIS_FLOWS)))


def is_behind(reason: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a position with this reason counts as not in sync."""
    return and_(reason.is_not(None), reason.not_in(sorted(NOT_THIS_FLOWS)))
