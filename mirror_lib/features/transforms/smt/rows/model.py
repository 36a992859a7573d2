"""The result of a chain for rows, and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from mirror_lib.features.transforms.smt.errors import SmtError


class MadeRows(NamedTuple):
    """The rows of a batch that are not dropped.

    Attributes:
        kept: their numbers, ascending; None if no row is dropped.
        columns: the changed ones of `key`, `value`, `headers` and `topic`, for these rows. A topic is null where it is
            unchanged.
    """

    kept: pa.Array | None
    columns: Mapping[str, pa.Array]


class RefusedRowError(Exception):
    """A chain rejects a row: the first such row of its batch."""

    def __init__(self, row: int, error: SmtError) -> None:
        """Args:
        row: its number in the batch.
        error: what is wrong with its record.
        """
        super().__init__(f"row {row}: {error}")
        self.row = row
        self.error = error


class NeedsRecordsError(Exception):
    """The result for some rows can only be found record by record: one of them may fail."""
