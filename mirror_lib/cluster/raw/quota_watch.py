"""Logs throttling by brokers' own quotas (KIP-13).

The client need not react: since Kafka 2.0 a broker responds at once with the throttle time, and itself stops reading
from the connection (KIP-219). But a copy that is slow for this reason should report it. The response to a fetch then
has no partitions (Java `FetchContext.getThrottledResponse`), and the fetch must be sent again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_WORDS = 60.0


class QuotaWatch:
    """Adds up the throttle times of the brokers of one cluster for one client, and logs them about once a minute."""

    def __init__(self, cluster: str, client_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._clock = clock
        self._said_at: float | None = None
        self._since = 0
        #: Across all brokers, since the connection was opened.
        self.throttled_ms = 0

    def note(self, node: int, milliseconds: int) -> None:
        """Add the throttle time in a broker's response; 0 if it does not throttle."""
        if milliseconds <= 0:
            return
        self.throttled_ms += milliseconds
        self._since += milliseconds
        now = self._clock()
        if self._said_at is None or now - self._said_at >= _SECONDS_BETWEEN_WORDS:
            _log.warning(
                "broker %d of %s throttles the client %r: %.1f s since the last report. A quota of the cluster for "
                "this client or its user is used up.",
                node,
                self._cluster,
                self._client_id,
                self._since / 1000,
            )
            self._said_at, self._since = now, 0
