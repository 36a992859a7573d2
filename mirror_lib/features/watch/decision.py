"""Decides whether the latest offsets of a source call for a run of a flow. Pure: time and stored state are given.

A run is started for ends that differ from the stored positions. Ends that a run has not copied, since it failed or was
about other topics, start another one after a pause that doubles: a partition that cannot be copied must not start one
run after the other, and one that can must not wait for a schedule. While a run is started or active, nothing else is
started; what was written meanwhile is compared when it has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mirror_lib.topology.names import TopicPartition

Ends = Mapping[TopicPartition, int]

#: A run that was started appears in the ledger within this time, else it is started again: Airflow may have been down.
ANSWER_SECONDS = 120.0
#: Minimum time between two starts if the last run failed, or if the ledger cannot be read.
PAUSE_SECONDS = 60.0
#: Pause before another start for ends that a run has not copied; it doubles up to the maximum.
AGAIN_SECONDS, LONGEST_AGAIN_SECONDS = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class NewestRun:
    """A flow's newest run in the ledger."""

    id: str
    is_active: bool
    has_succeeded: bool
    #: Seconds since it ended; 0 while it is active.
    ended_ago: float = 0.0


@dataclass(slots=True)
class _Started:
    #: Ends that the run is to copy.
    ends: Ends
    at: float
    #: The newest run at that time.
    after: str | None


@dataclass(frozen=True, slots=True)
class _Again:
    """An end that a run has not copied."""

    end: int
    #: When the next run may start for it.
    at: float
    runs: int


@dataclass(slots=True)
class StartRule:
    """When the next run of one flow starts."""

    #: Ends that are copied.
    _settled: dict[TopicPartition, int] = field(default_factory=dict)
    _again: dict[TopicPartition, _Again] = field(default_factory=dict)
    _started: _Started | None = None

    def changed(self, ends: Ends, now: float) -> list[TopicPartition]:
        """Partitions whose end is not copied and may start a run; new partitions without records are copied."""
        settled = self._settled
        return [
            partition
            for partition, end in ends.items()
            if settled.get(partition, 0) != end and not self._waits(partition, end, now)
        ]

    def _waits(self, partition: TopicPartition, end: int, now: float) -> bool:
        again = self._again.get(partition)
        return again is not None and again.end == end and now < again.at

    def has_to_ask(self, ends: Ends, now: float) -> bool:
        """True if the ledger has to be read for a decision: not for an idle flow."""
        return self._started is not None or bool(self.changed(ends, now))

    def starts(
        self, ends: Ends, newest: NewestRun | None, positions: Callable[[], Mapping[TopicPartition, int]], now: float
    ) -> dict[TopicPartition, int]:
        """Decide whether a run starts now; return the ends that it is to copy, none if no run starts.

        Args:
            newest: None if the flow has had no run.
            positions: reads the next source offset of each partition that was copied.
            now: seconds of any clock that does not go back.
        """
        if newest is not None and newest.is_active:
            return {}
        if (started := self._started) is not None:
            answered = newest is not None and newest.id != started.after
            if not answered and now - started.at < ANSWER_SECONDS:
                return {}
            if answered:
                self._note(started.ends, positions(), now)
            self._started = None
        changed = self.changed(ends, now)
        if not changed:
            return {}
        copied = positions()
        self._settle({each: ends[each] for each in changed if copied.get(each) == ends[each]})
        wanted = {each: ends[each] for each in self.changed(ends, now)}
        if not wanted:
            return {}
        # A time in the future is that of a clock that was wrong.
        if newest is not None and not newest.has_succeeded and 0 <= newest.ended_ago < PAUSE_SECONDS:
            return {}
        self._started = _Started(wanted, now, newest.id if newest is not None else None)
        return wanted

    def _settle(self, ends: Ends) -> None:
        self._settled.update(ends)
        for each in ends:
            self._again.pop(each, None)

    def _note(self, wanted: Ends, copied: Mapping[TopicPartition, int], now: float) -> None:
        """Note what a run that has ended has copied of what it was started for, and what it has not."""
        self._settle({each: end for each, end in wanted.items() if copied.get(each) == end})
        for each, end in wanted.items():
            if copied.get(each) != end:
                before = self._again.get(each)
                runs = before.runs + 1 if before is not None and before.end == end else 1
                pause = min(AGAIN_SECONDS * 2 ** (runs - 1), LONGEST_AGAIN_SECONDS)
                self._again[each] = _Again(end, now + pause, runs)

    def starts_unseen(self, ends: Ends, now: float) -> dict[TopicPartition, int]:
        """As `starts`, if the ledger cannot be read: every change starts a run, but not more often than each minute."""
        if (started := self._started) is not None and now - started.at < PAUSE_SECONDS:
            return {}
        wanted = {each: ends[each] for each in self.changed(ends, now)}
        self._settled.update(wanted)
        self._started = _Started(wanted, now, None) if wanted else None
        return wanted
