"""Decides when a task retries, and when it gives up."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mirror_lib.errors import MirrorError, TopicMissingError

#: How long a broker may not know a topic (new leaders learn of topics late) before it counts as deleted.
_MISSING_TOPIC_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


def may_pass(error: MirrorError) -> bool:
    """True if the task should retry."""
    return error.retriable or isinstance(error, TopicMissingError)


def without_frames(error: BaseException | None) -> None:
    """Remove the traceback of a stored error: its frames keep the batches of the failed request in memory."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


@dataclass(slots=True)
class Backoff:
    """Growing pauses between attempts for one partition, up to a limit counted from the last progress."""

    limit_seconds: float
    failing_since: float | None = None
    _missing_since: float | None = None
    not_before: float = 0.0
    _pause: float = field(default=_FIRST_PAUSE)

    def record_failure(self, cause: MirrorError) -> bool:
        """Record a failure; return true if another attempt is allowed (after `not_before`)."""
        now = time.monotonic()
        if self.failing_since is None:
            self.failing_since = now
        self.not_before = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        # A broker that restarts is unreachable first, then does not know its topics: that time is counted separately.
        if not isinstance(cause, TopicMissingError):
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
        if self._missing_since is not None and self.not_before - self._missing_since > _MISSING_TOPIC_SECONDS:
            return False
        return self.not_before - self.failing_since <= self.limit_seconds

    def record_progress(self) -> None:
        """Record progress: the next failure starts from the beginning."""
        if self.failing_since is not None:
            self.failing_since = self._missing_since = None
            self.not_before = 0.0
            self._pause = _FIRST_PAUSE

    @property
    def seconds_failing(self) -> float:
        """Seconds since the first failure without progress."""
        return 0.0 if self.failing_since is None else time.monotonic() - self.failing_since

    @property
    def pause_left(self) -> float:
        """Remaining seconds of the pause after the last failure; 0 if it is over."""
        return max(self.not_before - time.monotonic(), 0.0)

    @property
    def is_waiting(self) -> bool:
        """True during the pause after the last failure."""
        return self.not_before > 0 and self.not_before > time.monotonic()
