"""Decides if a step with its own interval is due in a scheduled run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

#: Fraction of the interval by which a step may be early: a schedule of the same length jitters, and a run that is a
#: second too early would otherwise double the interval.
_EARLY = 0.1
_DUE_AGAIN = "is due again at"


class SyncStep(StrEnum):
    """The steps whose times the ledger stores."""

    TOPIC_CONFIGS = "topic configs"
    TOPIC_ACLS = "topic ACLs"
    CHECKPOINTS = "checkpoints"
    GROUP_OFFSETS = "group offsets"


@dataclass(frozen=True, slots=True)
class Interval:
    """MM2's enabled flag and interval of a step."""

    enabled_key: str
    enabled: bool
    interval_key: str
    seconds: int

    def why_not(self, last: datetime | None, now: datetime) -> str | None:
        """Return why the step is skipped now, as text; None if it is due.

        Args:
            last: when its last successful run began.
            now: the current time.
        """
        if not self.enabled:
            return f"{self.enabled_key} is false"
        if self.seconds < 0:
            return f"{self.interval_key} is {self.seconds}"
        # A time in the future is that of a clock that was wrong.
        if last is None or last > now or now - last >= timedelta(seconds=self.seconds * (1 - _EARLY)):
            return None
        due = last + timedelta(seconds=self.seconds)
        return f"it last ran at {last:%H:%M:%S} UTC and {_DUE_AGAIN} {due:%H:%M:%S} ({self.interval_key})"


def is_due_again(why_not: str) -> bool:
    """True if a step was skipped only because its interval has not passed, by the text of `Interval.why_not`."""
    return _DUE_AGAIN in why_not
