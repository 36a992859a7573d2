"""What becomes of rows, and what is raised for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from mirror_lib.transform.smt.errors import SmtError


class MadeRows(NamedTuple):
    """The rows of a batch that are left.

    Attributes:
        kept: their numbers, ascending; None when all are left.
        columns: what was made anew of `key`, `value`, `headers` and `topic`, for the rows that are left. A topic is
            null where it is as it was.
    """

    kept: pa.Array | None
    columns: Mapping[str, pa.Array]


class RefusedRowError(Exception):
    """A chain cannot take a row: the first one of its batch that it cannot."""

    def __init__(self, row: int, error: SmtError) -> None:
        """Args:
        row: its number in the batch.
        error: what is wrong with its record.
        """
        super().__init__(f"row {row}: {error}")
        self.row = row
        self.error = error


class NeedsRecordsError(Exception):
    """What a chain makes of some rows can be told only one record after the other: maybe one of them fails."""
