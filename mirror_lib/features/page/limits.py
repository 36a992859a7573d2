"""Rate limits for expensive requests: a token bucket for each visitor and route, in this process.

Airflow may run several API server processes; each has its own buckets, so the effective limits are multiplied. The
limits protect the ledger and Airflow from a runaway loop, not from a distributed attack.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.page.errors import TooManyRequestsError

#: Changes the defaults, for example `actions=10,lists=0`: requests a minute, 0 for no limit.
LIMITS_VARIABLE = "MIRROR_PAGE_LIMITS"
#: Maximum number of buckets; the least recently used one is replaced by a new one.
_MOST_BUCKETS = 10_000
_MINUTE = 60.0


class Kind(StrEnum):
    """Kinds of requests with a limit."""

    #: Requests that start, pause or decide something.
    ACTIONS = "actions"
    #: Requests that read many rows: the overview, the history, the lists of partitions and of groups.
    LISTS = "lists"
    #: `/metrics`, which reads all flows.
    METRICS = "metrics"


#: Requests a minute of one visitor to one route. Typing into a filter sends a request for each key.
DEFAULTS: Mapping[Kind, int] = {Kind.ACTIONS: 30, Kind.LISTS: 300, Kind.METRICS: 60}
_LARGEST = 1_000_000
_NUMBER = re.compile(r"[0-9]{1,7}")


def parse_limits(text: str) -> dict[Kind, int]:
    """Return the effective limits: the defaults, changed by `MIRROR_PAGE_LIMITS`.

    Raises:
        ConfigurationError: it is malformed.
    """
    found = dict(DEFAULTS)
    for item in filter(None, (each.strip() for each in text.split(","))):
        name, _, number = (part.strip() for part in item.partition("="))
        if name not in set(Kind) or not _NUMBER.fullmatch(number) or int(number) > _LARGEST:
            raise ConfigurationError(
                f"{LIMITS_VARIABLE} contains {item!r}, which is not valid.",
                action=f"Write {', '.join(f'{kind}={each}' for kind, each in DEFAULTS.items())}: requests a minute, "
                f"up to {_LARGEST}, 0 for no limit.",
            )
        found[Kind(name)] = int(number)
    return found


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimits:
    """Counts requests. A bucket holds a minute's worth of tokens and fills evenly. Threads may share it."""

    def __init__(self, environment: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        """Parse nothing yet: malformed limits fail requests, and do not stop Airflow.

        Args:
            environment: `MIRROR_PAGE_LIMITS`, or the defaults apply.
            clock: monotonic seconds.
        """
        self._environment = environment
        self._clock = clock
        self._lock = threading.Lock()
        self._limits: dict[Kind, int] | None = None
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def take(self, kind: Kind, route: str, visitor: str) -> None:
        """Count one request.

        Raises:
            TooManyRequestsError: it exceeds the limit.
            ConfigurationError: the limits are malformed.
        """
        with self._lock:
            if self._limits is None:
                self._limits = parse_limits(self._environment.get(LIMITS_VARIABLE, ""))
            most = self._limits[kind]
            if not most:
                return
            now, key = self._clock(), (route, visitor)
            bucket = self._buckets.get(key)
            if bucket is None:
                if len(self._buckets) >= _MOST_BUCKETS:
                    self._buckets.popitem(last=False)
                bucket = self._buckets[key] = _Bucket(most, now)
            self._buckets.move_to_end(key)
            bucket.tokens = min(most, bucket.tokens + (now - bucket.at) * most / _MINUTE)
            bucket.at = now
            if bucket.tokens < 1:
                raise TooManyRequestsError.after(ceil((1 - bucket.tokens) * _MINUTE / most))
            bucket.tokens -= 1
