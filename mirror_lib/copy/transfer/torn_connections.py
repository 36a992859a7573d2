"""Find the batch for which the target closes the connection.

A broker closes a connection when it receives a request of more than `socket.request.max.bytes` (Java `NetworkReceive`),
and proxies of managed services have their own limits. Neither reports the cause, so the copy sees an unreachable
broker. A batch that was in flight twice when a connection ended is therefore sent alone, with nothing else on its
connection. If that ends the connection too, the batch is split, and a record that ends it alone is too large for the
target.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from mirror_lib.copy.transfer.producer_state import Outgoing
from mirror_lib.errors import BrokerUnreachableError, MirrorError, RecordTooLargeError, Where
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.split import halves

_log = logging.getLogger(__name__)

#: No working broker has a lower limit: if a connection ends with less than that in flight, no limit is the cause.
LEAST_REQUEST_BYTES = 16 * 1024
#: Connections that end with only one batch in flight until the batch is split. Its parts start with a count of one.
_UNTIL_DIVIDED = 2
#: The same until a single record counts as too large. Between two tries the broker has responded to another request.
_UNTIL_REFUSED = 5


class TornConnections:
    """The connections to the target that ended during a copy task."""

    def __init__(self) -> None:
        #: Bytes of the smallest batch of several records that ended connections alone; None if there is none.
        self.divided_from: int | None = None

    def note(self, error: MirrorError, sent: Iterable[Outgoing]) -> None:
        """Count an end of the connection for the batches of the request in flight."""
        if not _connection_ended(error):
            return
        batches = list(sent)
        for outgoing in batches:
            if len(outgoing.batch.payload) < LEAST_REQUEST_BYTES:
                continue
            if outgoing.is_suspected and len(batches) == 1:
                outgoing.torn_alone += 1
            outgoing.torn += 1

    def is_refused(self, outgoing: Outgoing) -> bool:
        """Return whether the batch must be split; if it has one record only, whether that is too large."""
        if outgoing.batch.count == 1:
            return outgoing.torn_alone >= _UNTIL_REFUSED
        if outgoing.torn_alone < _UNTIL_DIVIDED:
            return False
        size = len(outgoing.batch.payload)
        if self.divided_from is None or size < self.divided_from:
            self.divided_from = size
            _log.warning(
                "the target closed the connection for each batch of %d bytes; larger batches are split from now on. "
                "Set <target>.producer.max.request.size to the limit of the brokers (socket.request.max.bytes) or "
                "of the proxy in front of them",
                size,
            )
        return True

    def divide(self, batches: Sequence[ReadyBatch]) -> Sequence[ReadyBatch]:
        """Batches split to below the size that ended connections earlier, so that the same size is not tried again."""
        limit = self.divided_from
        if limit is None or all(len(each.payload) < limit for each in batches):
            return batches
        return [part for each in batches for part in _below(each, limit)]


def _below(batch: ReadyBatch, limit: int) -> Iterable[ReadyBatch]:
    parts = halves(batch) if batch.count > 1 and len(batch.payload) >= limit else None
    if parts is None:
        return [batch]
    return [smaller for part in parts for smaller in _below(part, limit)]


def _connection_ended(error: MirrorError) -> bool:
    return isinstance(error, BrokerUnreachableError) and isinstance(error.__cause__, ConnectionResetError)


def too_large_to_send(outgoing: Outgoing, *, cluster: str, target: str, where: Where) -> RecordTooLargeError:
    """The error of a record that ends the connection each time it is sent alone.

    Args:
        cluster: alias of the target.
        target: topic and partition there.
    """
    return RecordTooLargeError(
        f"the record takes {len(outgoing.batch.payload)} bytes, and cluster {cluster} closed the connection each of "
        f"the last {outgoing.torn_alone} times that it was sent alone to {target}, while it answered other requests.",
        where=where,
        action="Raise socket.request.max.bytes of the target's brokers, or the limit of the proxy in front of them. "
        f"{cluster}.producer.max.request.size sets such a limit in advance.",
    )
