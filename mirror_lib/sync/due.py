"""Whether a step with an interval of its own is due in a scheduled run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

#: Part of the interval by which a step may come early: a schedule of the same length jitters, and a run that comes
#: a second too soon would otherwise double the interval.
_EARLY = 0.1
_DUE_AGAIN = "is due again at"


class SyncStep(StrEnum):
    """The steps whose times the ledger keeps."""

    TOPIC_CONFIGS = "topic configs"
    TOPIC_ACLS = "topic ACLs"
    CHECKPOINTS = "checkpoints"
    GROUP_OFFSETS = "group offsets"


@dataclass(frozen=True, slots=True)
class Interval:
    """MM2's switch and interval of a step."""

    enabled_key: str
    enabled: bool
    interval_key: str
    seconds: int

    def why_not(self, last: datetime | None, now: datetime) -> str | None:
        """Why the step is left out now, in words; None when it is to be done.

        Args:
            last: when it began the last time that it succeeded.
            now: the present moment.
        """
        if not self.enabled:
            return f"{self.enabled_key} is false"
        if self.seconds < 0:
            return f"{self.interval_key} is {self.seconds}"
        if last is None or now - last >= timedelta(seconds=self.seconds * (1 - _EARLY)):
            return None
        due = last + timedelta(seconds=self.seconds)
        return f"it was done at {last:%H:%M:%S} UTC and {_DUE_AGAIN} {due:%H:%M:%S} ({self.interval_key})"


def is_due_again(why_not: str) -> bool:
    """Whether a step was left out only because its interval is not over, as `Interval.why_not` says it."""
    return _DUE_AGAIN in why_not
