"""How long one task waits for partitions without a leader: once, not for each topic and group that needs one."""

from __future__ import annotations

import time

#: An election takes less.
LEADER_SECONDS = 15.0
#: A coordinator that has just moved, or whose topic is being created, is found within this time.
_LEAST_SECONDS = 1.0


class LeaderWait:
    """The seconds that a task may still wait, for all partitions together."""

    def __init__(self) -> None:
        self._left = LEADER_SECONDS

    @property
    def seconds(self) -> float:
        """How long the next part of the task may wait."""
        return max(self._left, _LEAST_SECONDS)

    def note(self, since: float) -> None:
        """Count a wait.

        Args:
            since: when it began, by the monotonic clock.
        """
        self._left -= time.monotonic() - since
