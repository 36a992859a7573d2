"""Whether records will be copied before retention deletes them: the verdicts of a forecast, and durations as text."""

from __future__ import annotations

from enum import StrEnum


class Outlook(StrEnum):
    """Whether all records will be copied before retention deletes them, best first."""

    OK = "ok"
    #: A value that the forecast needs is not known.
    UNKNOWN = "unknown"
    #: Some records may be deleted, or almost, when the copy reaches them.
    TIGHT = "tight"
    #: At this speed some records will be deleted before they are copied.
    WILL_BE_LOST = "will-be-lost"
    ALREADY_LOST = "already-lost"

    @property
    def severity(self) -> int:
        """Greater is worse."""
        return list(Outlook).index(self)


def duration(seconds: float) -> str:
    """A duration as text in a suitable unit: `40 seconds`, `5 minutes`, `3.5 hours`, `12 days`."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            count = seconds / size
            return f"{count:.1f} {unit}" if count < 10 and unit != "minutes" else f"{count:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
