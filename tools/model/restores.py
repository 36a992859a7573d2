"""Clusters restored from a copy of their disks; topics, partitions and other times that come while a flow runs.

A run follows each restore at once: later, retention or compaction may delete the one record by which it is noticed
(docs/reliability.md, known gaps).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.model.commands import Point
from tools.model.expected import Place, ViolationError
from tools.model.groups import Groups
from tools.model.steps import COMPACTED_TOPIC, LATE_TOPIC, TOPICS
from tools.model.world import Cluster, produce


@dataclass(frozen=True, slots=True)
class _Snapshot:
    disk: Path
    #: Facts that must be the same when it is restored: what is decided in between is in the ledger alone.
    of: tuple[object, ...]
    #: What had been copied, also to target topics that were deleted since.
    copied: Mapping[Place, frozenset[str]]


class Restores(Groups):
    """Rules of snapshots, of what appears during a run, and of the clock."""

    def _do_snapshot(self, which: str) -> None:
        """Copy the disks of source, target, or both."""
        self._do_unhang(commit=False)
        for name in _names(which):
            disk = self._folder / f"{name}-disk"
            self._cluster(name).keep_disk(disk)
            self._look()
            copied = {place: frozenset(ids) for place, ids in self._ever_copied.items()}
            self._snapshots[name] = _Snapshot(disk, self._not_in_a_snapshot(), copied)
        self._write_config()

    def _cluster(self, name: str) -> Cluster:
        return self._source if name == "source" else self._target

    def _not_in_a_snapshot(self) -> tuple[object, ...]:
        return self._target, self._cutovers, tuple(self._shown_ids.items())

    def _do_restore_snapshot(self, which: str, grow: str | None) -> None:
        """Put disks back to their copies; then other records may come, up to the end that was there, or not.

        Without the ledger too, nobody knows what was copied.
        """
        names = _names(which)
        taken = [self._snapshots.get(name) for name in names]
        if (
            self._moved
            or self._ledger_restored
            or any(each is None or each.of != self._not_in_a_snapshot() for each in taken)
        ):
            return
        self._end_stopped()
        self._do_unhang(commit=False)
        self._look()
        source_ends, target_ends = self._source_ends(), self._target_ends()
        for name in names:
            self._cluster(name).put_disk(self._snapshots[name].disk)
        self._write_config()
        if "target" in names:
            self._target_restored = True
            self._rewind_target(self._snapshots["target"].copied)
        if "source" in names:
            self._rewind_source()
        if grow is not None and "source" in names:
            self._grow_again(self._source_ends(), source_ends, grow, self._write_more)
        elif grow is not None:
            self._grow_again(self._target_ends(), target_ends, grow, self._write_foreign)
        self._do_run()

    def _source_ends(self) -> dict[Place, int]:
        return {
            (topic, number): high for topic in TOPICS for number, high in self._source.ends(self._topic(topic)).items()
        }

    def _target_ends(self) -> dict[Place, int]:
        return {
            (topic, number): high for topic in TOPICS for number, high in self._target.ends(self._remote(topic)).items()
        }

    def _grow_again(
        self, now: dict[Place, int], before: dict[Place, int], grow: str, write: Callable[[Place, int], None]
    ) -> None:
        for place, end in now.items():
            lost = before.get(place, 0) - end
            count = {"less": lost // 2, "same": lost, "more": lost + 3}[grow]
            if lost > 0 and count > 0:
                write(place, count)

    def _write_more(self, place: Place, count: int) -> None:
        self._do_produce(*place, count, "present", "none", 5)

    def _write_foreign(self, place: Place, count: int) -> None:
        ids = self._ids(count)
        self._strangers |= set(ids)
        when = int(time.time() * 1000)
        produce(
            self._target, self._remote(place[0]), place[1], ids, timestamp_ms=when, keyed=place[0] == COMPACTED_TOPIC
        )

    def _rewind_source(self) -> None:
        for topic in TOPICS:
            name = self._topic(topic)
            numbers = self._source.partitions(name)
            found = self._source.read(name, dict.fromkeys(numbers, 0))
            for (known, number), history in self._histories.items():
                if known == topic:
                    low, high, records = found.get(number, (0, 0, []))
                    lost = history.rewind([each for each in records if each.id not in self._strangers], high)
                    # Nobody has seen these.
                    history.excused |= lost - self._copy((topic, number)).ids()
                    self._starts[topic, number] = low
            # Its producers create it again.
            if not numbers and topic in self._created:
                self._source.create(name, 2, self._configs(topic))

    def _rewind_target(self, copied: Mapping[Place, frozenset[str]]) -> None:
        for copy in self._copies.values():
            copy.records, copy.read_to = [], 0
        self._ever_copied.clear()
        for place, ids in copied.items():
            self._ever_copied[place] |= ids
        self._look()
        for place in self._histories:
            copy = self._copy(place)
            copy.restarts = [each for each in copy.restarts if each <= copy.read_to]

    # ------------------------------------------------------------ during a run

    def _do_appear(self, what: str, at: str, topic: str, burst: int, age: str) -> None:
        """A topic or a partition is created while a run of several rounds copies: the next run has it at the latest."""
        if topic in self._moved or self._do_run().exit_code:
            return
        self._burst(topic, burst, age)
        self._end_stopped()
        said = self._command("run", "--max-seconds", "20", point=Point(at, 1, signal.SIGSTOP))
        if what == "topic":
            self._do_create(LATE_TOPIC, burst)
        else:
            self._do_grow(topic)
            self._do_produce(topic, len(self._source.partitions(self._topic(topic))) - 1, burst, age, "none", 3)
        if said is None:
            said = self._stopped.pop().wake()
            assert said is not None
            self._note("woken", said)
        self._look()
        if said.exit_code:
            raise ViolationError("ended", f"a new {what} ended a run: exit {said.exit_code} {sorted(said.reasons)}")
        said = self._do_run()
        if said.exit_code:
            raise ViolationError("ended", f"the run after a new {what}: exit {said.exit_code} {sorted(said.reasons)}")

    def _do_create(self, topic: str, count: int) -> None:
        """Create the topic that the flow does not have from the beginning, with records."""
        if topic not in self._created:
            self._created.add(topic)
            self._source.create(self._topic(topic), 2, self._configs(topic))
            for number in range(2):
                self._expect_new((topic, number), late=self._complete_once)
        self._do_produce(topic, 0, count, "present", "none", 5)

    def _do_clock(self, ahead: int, at: str | None, nth: int, topic: str, burst: int, age: str) -> None:
        """The clock of the product's processes jumps, possibly during a run."""
        if at is not None:
            self._burst(topic, burst, age)
            said = self._command("run", point=Point(at, nth, None, ahead))
            assert said is not None
            self._after_run(said)
        self._clock = float(ahead)


def _names(which: str) -> tuple[str, ...]:
    return ("source", "target") if which == "both" else (which,)
