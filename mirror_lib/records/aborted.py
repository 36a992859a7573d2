"""Determines which batches of a fetch belong to aborted transactions, as Java's `CompletedFetch` does."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from mirror_lib.records.records import RecordError
from mirror_lib.records.varint import decode_varint

_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0


class AbortedTransactions:
    """The aborted transactions of one fetch response; check its batches in their order."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        """Start a response.

        Args:
            aborted: (producer id, first offset) pairs as the broker returns them to a `read_committed` fetch.
        """
        self._coming = sorted(aborted, key=lambda pair: pair[1], reverse=True)
        self._aborting: set[int] = set()

    def is_aborted(self, producer_id: int, last_offset: int, *, transactional: bool) -> bool:
        """True if a data batch must be hidden."""
        self._advance(last_offset)
        return transactional and producer_id in self._aborting

    def control(self, producer_id: int, last_offset: int, *, abort: bool) -> None:
        """Process a control batch: an abort marker ends its producer's aborted transaction."""
        self._advance(last_offset)
        if abort:
            self._aborting.discard(producer_id)

    def _advance(self, last_offset: int) -> None:
        while self._coming and self._coming[-1][1] <= last_offset:
            self._aborting.add(self._coming.pop()[0])


def is_abort_marker(body: bytes) -> bool:
    """True if a control batch's body, which is never compressed, is an abort marker (its key: version, type).

    Raises:
        RecordError: it contains no readable control record.
    """
    try:
        _length, at = decode_varint(body, 0)
        _timestamp, at = decode_varint(body, at + 1)
        _offset, at = decode_varint(body, at)
        _key_length, at = decode_varint(body, at)
        _version, kind = _CONTROL_KEY.unpack_from(body, at)
    except (IndexError, ValueError, struct.error) as error:
        raise RecordError(f"its control record cannot be read: {error}") from error
    return bool(kind == _ABORT)
