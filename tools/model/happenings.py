"""External events of a flow: writers, retention, compaction, deletions, and changed settings."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tools.model.expected import Place
from tools.model.state import State
from tools.model.steps import COMPACTED_TOPIC
from tools.model.world import Transaction, produce

_HOUR_MS = 3_600_000
_AGES = {"present": 0, "old": -50 * _HOUR_MS, "future": _HOUR_MS // 2}
_MOST_PARTITIONS = 4
_RETENTION_HOURS, _RETENTION_SECONDS = 10, 3.0
_ROLLS_AFTER_SECONDS, _CLEANING_SECONDS = 0.2, 5.0


class Happenings(State):
    """Rules of events; the model observes the result of each.

    If the writers of a topic are at the target, only writing happens to it: there it has the only copy of records.
    """

    def _do_settings(
        self,
        guarded: bool,
        committed: bool,
        latest: bool,
        ends: str | None = None,
        separator: str | None = ".",
        translation: str = "exact",
        same: bool = False,
    ) -> None:
        """Choose the settings of the flow; only at the beginning of a sequence.

        Args:
            ends: the topic that is cut over and failed back after settling.
            separator: of the default policy; None: topics keep their names.
            translation: of the offsets of groups.
            same: records have the same offsets on both sides.
        """
        self._guarded, self._committed, self._from_latest, self._ends = guarded, committed, latest, ends
        self._separator, self._translation, self._same = separator, translation, same
        self._write_config()

    def _do_first_start(self, latest: bool) -> None:
        """Change the first start of partitions that were never copied."""
        self._from_latest = latest
        self._write_config()

    def _do_produce(self, topic: str, partition: int, count: int, age: str, codec: str, batch: int) -> None:
        """Write to the source; after a cutover, to the target."""
        when = int(time.time() * 1000) + _AGES[age]
        name, partition = self._place(topic, partition)
        ids = self._ids(count)
        moved = topic in self._moved
        if moved:
            self._look()
        produce(
            self._target if moved else self._source,
            self._remote(topic) if moved else name,
            partition,
            ids,
            timestamp_ms=when,
            codec=codec,
            batch=batch,
            keyed=topic == COMPACTED_TOPIC,
        )
        if moved:
            self._look(ids)
        else:
            self._read_source(topic)

    def _do_transaction(self, topic: str, partition: int, count: int, commit: bool, age: str) -> None:
        if topic in self._moved:
            return
        self._begin_transaction(topic, partition, count, age)
        self._read_source(topic)
        self._end_transaction(self._open.pop(), commit=commit)
        self._read_source(topic)

    def _do_hang(self, topic: str, partition: int, count: int) -> None:
        if topic in self._moved:
            return
        self._begin_transaction(topic, partition, count, "present")
        self._read_source(topic)
        place, transaction = self._open[-1]
        history = self._histories[place]
        history.open[transaction.ids[0]] = history.records[history.order[transaction.ids[0]]].offset

    def _do_unhang(self, commit: bool) -> None:
        """End all open transactions."""
        while self._open:
            self._end_transaction(self._open.pop(), commit=commit)
        self._read_sources()

    def _begin_transaction(self, topic: str, partition: int, count: int, age: str) -> None:
        name, partition = self._place(topic, partition)
        when = int(time.time() * 1000) + _AGES[age]
        self._open.append(((topic, partition), Transaction(self._source, name, partition, self._ids(count), when)))

    def _end_transaction(self, which: tuple[Place, Transaction], *, commit: bool) -> None:
        place, transaction = which
        transaction.end(commit=commit)
        history = self._histories[place]
        history.open.pop(transaction.ids[0], None)
        if not commit:
            history.aborted |= set(transaction.ids)

    def _do_pause(self, seconds: int) -> None:
        time.sleep(seconds)

    def _do_delete_target(self, topic: str, again: bool) -> None:
        name = self._remote(topic)
        if topic in self._moved or (partitions := self._target.partitions(name)) == []:
            return
        self._look()
        # The new topic has no producer state of the old one: docs/reliability.md, known gaps.
        self._end_stopped()
        self._target.delete(name)
        for (known, _), history in self._histories.items():
            if known == topic:
                history.held_by_deleted |= history.excused
                history.lost_target = True
        if again:
            self._target.create(name, len(partitions), self._configs(topic))

    def _delete_source(self, topic: str) -> int:
        """Delete a topic; return its number of partitions."""
        for place, transaction in self._open:
            if place[0] == topic:
                self._histories[place].end_unread |= set(transaction.ids)
        self._do_unhang(commit=False)
        name = self._topic(topic)
        partitions = len(self._source.partitions(name))
        self._source.delete(name)
        for (known, _), history in self._histories.items():
            if known == topic:
                history.gone |= {each.id for each in history.records}
                history.read_to, history.first_present = 0, len(history.records)
        return partitions

    def _do_trim_source(self, topic: str, partition: int, percent: int) -> None:
        present = self._histories[topic, partition].present(committed=self._committed)
        if present and len(present) * percent >= 100 and topic not in self._moved:
            before = present[len(present) * percent // 100 - 1].offset + 1
            self._source.trim(self._topic(topic), partition, before)
            self._forget_before(topic)

    def _do_expire_source(self, topic: str) -> None:
        """Let retention delete the partitions whose records are all old."""
        if topic not in self._moved:
            self._source.expire(self._topic(topic), _RETENTION_HOURS, _RETENTION_SECONDS)
            self._forget_before(topic)

    def _forget_before(self, topic: str) -> None:
        for number, start in self._source.starts(self._topic(topic)).items():
            history = self._histories[topic, number]
            history.gone |= {each.id for each in history.records[history.first_present :] if each.offset < start}

    def _do_trim_target(self, topic: str, partition: int, percent: int) -> None:
        self._look()
        here = self._copy((topic, partition)).held()
        if here and len(here) * percent >= 100 and topic not in self._moved:
            self._target.trim(self._remote(topic), partition, here[len(here) * percent // 100 - 1].offset + 1)
            self._excuse_before(topic)

    def _do_expire_target(self, topic: str) -> None:
        self._look()
        name = self._remote(topic)
        if self._target.partitions(name) and topic not in self._moved:
            self._target.expire(name, _RETENTION_HOURS, _RETENTION_SECONDS)
            self._excuse_before(topic)

    def _excuse_before(self, topic: str) -> None:
        for number, start in self._target.starts(self._remote(topic)).items():
            copy = self._copy((topic, number))
            copy.start = max(copy.start, start)
            self._histories[topic, number].excused |= {each.id for each in copy.records if each.offset < start}

    def _do_compact(self, partition: int) -> None:
        """Let the cleaners of both sides run: they skip the active segment."""
        topic = COMPACTED_TOPIC
        time.sleep(_ROLLS_AFTER_SECONDS)
        self._do_produce(topic, partition, 1, "present", "none", 1)
        name, partition = self._place(topic, partition)
        deadline = time.monotonic() + _CLEANING_SECONDS
        while time.monotonic() < deadline:
            keys = [each.key for each in self._source.read(name, {partition: 0})[partition][2][:-1]]
            if len(keys) == len(set(keys)):
                break
            time.sleep(0.3)
        self._read_source(topic)

    def _do_grow(self, topic: str) -> None:
        count = len(self._source.partitions(self._topic(topic)))
        if count < _MOST_PARTITIONS and topic not in self._moved:
            self._source.grow(self._topic(topic), count + 1)
            # New partitions are copied from their beginning, regardless of the flow's first start.
            self._expect_new((topic, count), late=self._histories[topic, 0].begun)

    def _do_grow_target(self, topic: str, count: int) -> None:
        """Add a partition to the target topic alone; another producer writes there."""
        self._look()
        name = self._remote(topic)
        number = len(self._target.partitions(name))
        if topic not in self._moved and 0 < number < _MOST_PARTITIONS:
            self._target.grow(name, number + 1)
            if count:
                ids = self._ids(count)
                self._strangers |= set(ids)
                produce(
                    self._target,
                    name,
                    number,
                    ids,
                    timestamp_ms=int(time.time() * 1000),
                    keyed=topic == COMPACTED_TOPIC,
                )

    def _do_commit(self, group: str, topic: str, partition: int, percent: int) -> None:
        """Commit an offset of a group on the side of the topic's writers."""
        name, partition = self._place(topic, partition)
        cluster = self._source
        if topic in self._moved:
            cluster, name = self._target, self._remote(topic)
        low, high, _ = cluster.read(name, {partition: 1 << 60})[partition]
        cluster.commit(self._topic(group), name, partition, low + (high - low) * percent // 100)

    def _do_rename(self, topic: str, back: bool) -> None:
        """Rename the target topic, or restore its first name."""
        if self._moved:
            return
        self._look()
        self._note_names()
        if back:
            self._renamed.pop(topic, None)
        else:
            self._next += 1
            self._renamed[topic] = f"renamed-{self._name}-{topic}-{self._next}"
        self._write_config()

    def _do_policy(self, separator: str | None) -> None:
        """Change the replication policy, so that all target topics have other names."""
        if not self._moved:
            self._look()
            self._note_names()
            self._separator = separator
            self._write_config()

    def _do_backup_ledger(self) -> None:
        """Keep a copy of the ledger."""
        if not self._ledger_file.exists():
            return
        self._backup_file.unlink(missing_ok=True)
        with closing(sqlite3.connect(self._ledger_file)) as ledger:
            ledger.execute("VACUUM INTO ?", (str(self._backup_file),))
        self._backup = set(self._given_up), self._cutovers, set(self._followed)

    def _do_restore_ledger(self, empty: bool) -> None:
        """Put the copy of the ledger back, or an empty one in its place.

        Hand-overs of cutovers since then would be unknown: docs/troubleshooting.md, "The ledger is lost".
        """
        given_up, cutovers, followed = (set(), 0, set()) if empty or self._backup is None else self._backup
        if self._moved or cutovers != self._cutovers or self._positions_lost or self._target_restored:
            return
        self._end_stopped()
        for each in self._folder.glob(f"{self._ledger_file.name}*"):
            each.unlink()
        if not empty and self._backup is not None:
            shutil.copy(self._backup_file, self._ledger_file)
        # Stops since then are unknown.
        self._given_up = set(given_up)
        # Others may share the position topic: only the ledger says which partitions the flow followed.
        self._followed = set(followed)
        self._ledger_restored = True

    def _do_lose_positions(self) -> None:
        """Delete the position topic of the flow."""
        name = f"mm2-offsets.{self._alias}.internal"
        # Without the ledger nobody knows what was copied.
        if self._moved or self._ledger_restored or not self._target.partitions(name):
            return
        self._end_stopped()
        self._target.delete(name)
        self._positions_lost = True

    @property
    def _backup_file(self) -> Path:
        return self._folder / "backup.sqlite3"

    def _do_foreign(self, topic: str, partition: int) -> None:
        """Write unexpected records to the side that is the copy."""
        cluster, name = self._target, self._remote(topic)
        if topic in self._moved:
            cluster, name = self._source, self._topic(topic)
        if partition not in cluster.partitions(name):
            return
        (stranger,) = self._ids(1)
        self._strangers.add(stranger)
        when = int(time.time() * 1000)
        produce(cluster, name, partition, [stranger], timestamp_ms=when, keyed=topic == COMPACTED_TOPIC)
