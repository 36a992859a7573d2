"""Carries a sequence out on the clusters, and checks after each step what must hold, whoever copies and however.

What is checked (`model.expected`) knows nothing of the product but its command line. A run of the whole flow that ends
with 0 says that the copy is complete, and what stops a run can be decided.
"""

from __future__ import annotations

import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from model.commands import Command, Point, Said
from model.expected import (
    Copy,
    History,
    Place,
    ViolationError,
    check_group,
    check_order,
    check_range,
    deletions,
    missing,
)
from model.steps import COMPACTED_TOPIC, TOPICS, Step, text_of
from model.world import COMPACTED, Cluster, Transaction, produce

_HOUR_MS = 3_600_000
_AGES = {"present": 0, "old": -50 * _HOUR_MS, "future": _HOUR_MS // 2}
_LOST_AT_SOURCE = frozenset({"retention-gap", "source-recreated", "source-truncated"})
#: Reasons after which an operator sets the position.
_BY_POSITION = frozenset({"target-diverged", "unclean-start"})
_MOST_PARTITIONS = 4
_RETENTION_HOURS, _RETENTION_SECONDS = 10, 3.0
_ROLLS_AFTER_SECONDS, _CLEANING_SECONDS = 0.2, 5.0
_LEASE_SECONDS = 3.5
#: Needed so that what a killed run has left is over: its lock, in the first place.
_SETTLING_ROUNDS = 8
#: A task that was stopped for longer than five seconds looks at the log before it sends; docs/reliability.md.
_LOOKS_AFTER_SECONDS = 6.0


class Play:
    """One sequence with topics, files and a ledger of its own."""

    def __init__(
        self, source: Cluster, target: Cluster, folder: Path, name: str, *, without: Collection[str] = ()
    ) -> None:
        self._source, self._target, self._folder, self._name = source, target, folder, name
        self._without = tuple(without)
        self._alias = name
        self._histories: dict[Place, History] = defaultdict(History)
        #: By topic id too: a name may come to lead to an earlier topic again.
        self._copies: dict[tuple[Place, str | None], Copy] = {}
        self._present_ids: dict[str, str | None] = {}
        self._ever_copied: dict[Place, set[str]] = defaultdict(set)
        #: Where the logs of the source begin.
        self._starts: dict[Place, int] = {}
        self._strangers: set[str] = set()
        self._stopped: list[Command] = []
        self._open: list[tuple[Place, Transaction]] = []
        self._next = 0
        self._renamed: dict[str, str] = {}
        self._guarded = False
        self._committed = False
        self._from_latest = False
        self._complete_once = False
        self._appends = False
        self._backfills = 0
        self.said: list[str] = []

    # ------------------------------------------------------------ the world

    def begin(self) -> None:
        """Create the topics and write the flow's file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._config = self._folder / "mirror.properties"
        for topic in TOPICS:
            self._source.create(self._topic(topic), 2, self._configs(topic))
            for number in range(2):
                self._histories[topic, number].compacted = topic == COMPACTED_TOPIC
        self._write_config()

    def _write_config(self, *, source: str | None = None, target: str | None = None) -> None:
        lines = {
            "clusters": f"{self._alias}, target",
            f"{self._alias}.bootstrap.servers": source or self._source.servers,
            "target.bootstrap.servers": target or self._target.servers,
            f"{self._alias}->target.enabled": "true",
            f"{self._alias}->target.topics": f"{self._name}-.*",
            f"{self._alias}->target.groups": f"{self._name}-.*",
            f"{self._alias}.consumer.isolation.level": "read_committed" if self._committed else "read_uncommitted",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "target.offset.storage.replication.factor": "1",
            "target.offset.storage.partitions": "3",
            "emit.heartbeats.enabled": "false",
            "sync.group.offsets.enabled": "true",
            # One task has one thread: when it is stopped before it looks, nothing else of it is half sent.
            "tasks.max": "2" if self._guarded else "1",
            "mirror.run.lease.seconds": "3",
            "mirror.retry.max.seconds": "10",
            "mirror.batch.max.bytes": "2048",
            "mirror.batch.passthrough.min.bytes": "1024",
            "mirror.first.start": "latest" if self._from_latest else "earliest",
            "mirror.old.records.in.transactions": str(self._guarded).lower(),
            "mirror.target.existing": "append" if self._appends else "fail",
            "mirror.ledger.url": f"sqlite:///{self._folder}/ledger.sqlite3",
        }
        if self._renamed:
            pairs = (f"{self._topic(topic)}:{name}" for topic, name in sorted(self._renamed.items()))
            lines["mirror.topics.rename"] = ", ".join(pairs)
        self._config.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))

    def end(self) -> None:
        """Remove what the sequence made on both clusters."""
        for each in self._stopped:
            each.kill()
        for _, transaction in self._open:
            transaction.end(commit=False)
        for cluster in (self._source, self._target):
            for topic in cluster.topics(""):
                if self._name in re.split(r"[.-]", topic):
                    cluster.delete(topic)

    def play(self, steps: Sequence[Step], done: Callable[[], None] = lambda: None) -> None:
        """Carry out all steps, then let everything come to rest.

        Raises:
            ViolationError: an invariant does not hold; its note says after which step.
        """
        for number, step in enumerate(steps):
            self.said.append(f"{number:3}  {text_of(step)}")
            try:
                self.step(step)
            except ViolationError as violation:
                violation.step = number
                violation.add_note(f"after step {number}: {text_of(step)}")
                raise
            done()
        try:
            self.settle()
        except ViolationError as violation:
            violation.add_note("while everything came to rest after the last step")
            raise

    def step(self, step: Step) -> None:
        """Carry out one step; what the product has done is checked after it."""
        getattr(self, "_do_" + step["do"].replace("-", "_"))(**{key: step[key] for key in step if key != "do"})

    def _topic(self, topic: str) -> str:
        return f"{self._name}-{topic}"

    def _remote(self, topic: str) -> str:
        return self._renamed.get(topic, f"{self._alias}.{self._topic(topic)}")

    @staticmethod
    def _configs(topic: str) -> dict[str, str]:
        return COMPACTED if topic == COMPACTED_TOPIC else {}

    def _place(self, topic: str, partition: int) -> Place:
        """A partition that there is: a script may name one that only a topic that has grown has."""
        name = self._topic(topic)
        return name, partition % len(self._source.partitions(name))

    def _ids(self, count: int) -> list[str]:
        first, self._next = self._next, self._next + count
        return [f"{self._name}/{number}" for number in range(first, first + count)]

    def _do_settings(self, guarded: bool, committed: bool, latest: bool) -> None:
        """How the flow is set up; only at the beginning of a sequence."""
        self._guarded, self._committed, self._from_latest = guarded, committed, latest
        self._write_config()

    def _do_produce(self, topic: str, partition: int, count: int, age: str, codec: str, batch: int) -> None:
        when = int(time.time() * 1000) + _AGES[age]
        name, partition = self._place(topic, partition)
        produce(
            self._source,
            name,
            partition,
            self._ids(count),
            timestamp_ms=when,
            codec=codec,
            batch=batch,
            keyed=topic == COMPACTED_TOPIC,
        )
        self._read_source(topic)

    def _do_transaction(self, topic: str, partition: int, count: int, commit: bool, age: str) -> None:
        self._begin_transaction(topic, partition, count, age)
        self._read_source(topic)
        self._end_transaction(self._open.pop(), commit=commit)
        self._read_source(topic)

    def _do_hang(self, topic: str, partition: int, count: int) -> None:
        self._begin_transaction(topic, partition, count, "present")
        self._read_source(topic)
        place, transaction = self._open[-1]
        history = self._histories[place]
        history.open[transaction.ids[0]] = history.records[history.order[transaction.ids[0]]].offset

    def _do_unhang(self, commit: bool) -> None:
        """End all open transactions."""
        while self._open:
            self._end_transaction(self._open.pop(), commit=commit)
        for topic in TOPICS:
            self._read_source(topic)

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
        if (partitions := self._target.partitions(name)) == []:
            return
        self._look()
        # The new topic knows nothing of the producers of the old one: docs/reliability.md, known gaps.
        for each in self._stopped:
            each.kill()
        self._stopped = []
        self._target.delete(name)
        if again:
            self._target.create(name, len(partitions), self._configs(topic))

    def _do_recreate_source(self, topic: str) -> None:
        self._do_unhang(commit=False)
        name = self._topic(topic)
        partitions = len(self._source.partitions(name))
        self._source.delete(name)
        self._source.create(name, partitions, self._configs(topic))
        for (known, _), history in self._histories.items():
            if known == topic:
                history.gone |= {each.id for each in history.records}
                history.read_to, history.first_present = 0, len(history.records)

    def _do_trim_source(self, topic: str, partition: int, percent: int) -> None:
        present = self._histories[topic, partition].present(committed=self._committed)
        if present and len(present) * percent >= 100:
            before = present[len(present) * percent // 100 - 1].offset + 1
            self._source.trim(self._topic(topic), partition, before)
            self._forget_before(topic)

    def _do_expire_source(self, topic: str) -> None:
        """Retention deletes the partitions whose records are all old."""
        self._source.expire(self._topic(topic), _RETENTION_HOURS, _RETENTION_SECONDS)
        self._forget_before(topic)

    def _forget_before(self, topic: str) -> None:
        for number, start in self._source.starts(self._topic(topic)).items():
            history = self._histories[topic, number]
            history.gone |= {each.id for each in history.records[history.first_present :] if each.offset < start}

    def _do_trim_target(self, topic: str, partition: int, percent: int) -> None:
        self._look()
        copy = self._copy((topic, partition))
        here = copy.held()
        if here and len(here) * percent >= 100:
            self._target.trim(self._remote(topic), partition, here[len(here) * percent // 100 - 1].offset + 1)
            self._excuse_before(topic)

    def _do_expire_target(self, topic: str) -> None:
        self._look()
        name = self._remote(topic)
        if self._target.partitions(name):
            self._target.expire(name, _RETENTION_HOURS, _RETENTION_SECONDS)
            self._excuse_before(topic)

    def _excuse_before(self, topic: str) -> None:
        for number, start in self._target.starts(self._remote(topic)).items():
            copy = self._copy((topic, number))
            self._histories[topic, number].excused |= {each.id for each in copy.records if each.offset < start}

    def _do_compact(self, partition: int) -> None:
        """Let the cleaners of both sides come by: they leave the segment alone that is written to."""
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
        if count < _MOST_PARTITIONS:
            self._source.grow(self._topic(topic), count + 1)
            # What comes later is copied from its beginning, however the flow began.
            new = self._histories[topic, count]
            new.compacted = topic == COMPACTED_TOPIC
            new.begun = self._from_latest and self._histories[topic, 0].begun

    def _do_commit(self, group: str, topic: str, partition: int, percent: int) -> None:
        name, partition = self._place(topic, partition)
        low, high, _ = self._source.read(name, {partition: 1 << 60})[partition]
        self._source.commit(self._topic(group), name, partition, low + (high - low) * percent // 100)

    def _do_rename(self, topic: str, back: bool) -> None:
        """The flow's rules name another target topic, or the first one again."""
        self._look()
        if back:
            self._renamed.pop(topic, None)
        else:
            self._next += 1
            self._renamed[topic] = f"{self._alias}.renamed-{topic}-{self._next}"
        self._write_config()

    def _do_foreign(self, topic: str, partition: int) -> None:
        """Somebody else writes to the target."""
        name = self._remote(topic)
        if partition not in self._target.partitions(name):
            return
        (stranger,) = self._ids(1)
        self._strangers.add(stranger)
        when = int(time.time() * 1000)
        produce(self._target, name, partition, [stranger], timestamp_ms=when, keyed=topic == COMPACTED_TOPIC)

    # ------------------------------------------------------------ the product

    def _command(self, *words: str, point: Point | None = None, spark: bool = False) -> Said | None:
        command = Command(self._words(words), self._folder, point=point, without=self._without, spark=spark)
        said = command.finish()
        if said is None:
            self._stopped.append(command)
            self.said.append(f"     {' '.join(words)}: stopped")
        else:
            self._note(" ".join(words), said)
        return said

    def _words(self, words: Sequence[str]) -> list[str]:
        return [*words, "--config", str(self._config), "--flow", f"{self._alias}->target", "--json"]

    def _note(self, what: str, said: Said) -> None:
        places = [f"{each.get('reason')} {each.get('topic')}:{each.get('partition')}" for each in said.failures]
        self.said.append(f"     {what}: exit {said.exit_code} {', '.join(places)}".rstrip())
        if said.exit_code not in (0, 1, 2, 3, -9) or "Traceback" in said.text:
            raise ViolationError("crashed", f"{what}: exit {said.exit_code}\n{said.text[-1500:]}")

    def _do_run(self, spark: bool = False) -> Said:
        said = self._command("run", spark=spark)
        assert said is not None
        self._after_run(said)
        return said

    def _burst(self, topic: str, count: int, age: str) -> None:
        for partition in range(2):
            self._do_produce(topic, partition, count, age, "none", 3)

    def _do_crash(self, at: str, nth: int, topic: str, burst: int, age: str) -> None:
        self._burst(topic, burst, age)
        said = self._command("run", point=Point(at, nth, signal.SIGKILL))
        if said is not None and said.exit_code >= 0:
            self._after_run(said)
        else:
            self._look()

    def _do_stop(self, nth: int, topic: str, burst: int, age: str) -> None:
        """A run stops by itself: just before it sends, or before it looks whether it was stopped.

        Old records that go without transactions are not kept off between the two: docs/reliability.md.
        """
        self._burst(topic, burst, age)
        at = "before-produce" if self._guarded else "before-look"
        said = self._command("run", point=Point(at, nth, signal.SIGSTOP))
        if said is not None:
            self._after_run(said)

    def _do_overtake(self, nth: int, topic: str, burst: int, age: str) -> None:
        """A run is stopped, and wakes up while its successor has taken over and not yet written."""
        self._do_stop(1, topic, burst, age)
        self._do_stop(nth, topic, burst, age)
        self._do_wake()

    def _do_wake(self) -> None:
        for each in self._stopped:
            if not self._guarded and each.stopped_at is not None:
                time.sleep(max(0.0, each.stopped_at + _LOOKS_AFTER_SECONDS - time.monotonic()))
            said = each.wake()
            if said is None:
                each.kill()
            else:
                self._note("woken", said)
        self._stopped = []
        self._look()

    def _after_run(self, said: Said) -> None:
        """What the run has named as lost is excused; when it ended with 0 everything else must be there."""
        self._look()
        for place, history in self._histories.items():
            if any(self._means(each, place) for each in said.failures if each.get("reason") in _LOST_AT_SOURCE):
                history.excused |= history.gone - self._copy(place).ids()
            if any(self._means(each, place) for each in said.document.get("deletions") or []):
                self._read_source(place[0])
                history.excused |= deletions(history)
        if said.exit_code == 0:
            self._check_complete()

    def _means(self, failure: dict[str, object], place: Place) -> bool:
        return failure.get("topic") == self._topic(place[0]) and failure.get("partition") in (None, place[1])

    def _do_decide(self, how: str) -> None:
        self._look()
        said = self._command("gaps", how, "--all", "--yes")
        assert said is not None
        for made in said.document.get("decisions") or []:
            if made.get("error") is not None or not said.document.get("done"):
                continue
            place = (str(made["topic"]).removeprefix(self._name + "-"), int(made["partition"]))
            history, copy = self._histories[place], self._copy(place)
            if how == "accept":
                # What was copied and is not there any more is accepted, and what the source has lost: a run that was
                # killed may have noted the gap. What was never copied and is there must still come.
                history.excused |= (self._ever_copied[place] | history.gone) - copy.ids()
            elif made.get("new_position") is not None:
                self._begin_again(place)

    def _begin_again(self, place: Place) -> None:
        history, copy = self._histories[place], self._copy(place)
        copy.restarts.append(copy.read_to)
        history.excused |= history.gone - copy.ids()

    def _do_position(self, topic: str, partition: int, to: str) -> None:
        """An operator sets a position by hand."""
        name, partition = self._place(topic, partition)
        self._look()
        said = self._command("position", "set", "--topic", name, "--partition", str(partition), "--to", to, "--yes")
        assert said is not None
        if said.exit_code or not said.document.get("done"):
            return
        place = (topic, partition)
        history = self._histories[place]
        history.begun = True
        self._begin_again(place)
        if to == "latest":
            history.excused |= {each.id for each in history.records} - self._copy(place).ids()

    def _do_misaddress(self, which: str) -> None:
        """An alias of the flow names another cluster for a while: nothing may be believed or written."""
        if not self._complete_once:
            return  # A flow that has nothing yet may begin there.
        wrong = {"target": self._source.servers} if which == "target" else {"source": self._target.servers}
        self._write_config(**wrong)
        for words in (("run",), ("groups", "apply")):
            said = self._command(*words)
            if said is not None and said.exit_code == 0:
                raise ViolationError("cluster", f"{words[0]} ended with 0 although {which} is another cluster")
        written = [name for name in self._source.topics("") if name in map(self._remote, TOPICS)]
        if which == "target" and written:
            raise ViolationError("cluster", f"topics {written} on a cluster that is not the flow's target")
        self._write_config()

    def _do_backfill(self, topic: str, at: str | None, nth: int) -> None:
        """What the source holds now is copied once more, next to the flow's topic; perhaps with a kill in between."""
        self._backfills += 1
        words = ["backfill", "run", "--topics", self._topic(topic), "--into-suffix", f".b{self._backfills}"]
        self._read_source(topic)
        if at is not None:
            self._command(*words, point=Point(at, nth, signal.SIGKILL))
            time.sleep(_LEASE_SECONDS)
        said = self._command(*words)
        if said is None or said.exit_code:
            return
        remote = f"{self._remote(topic)}.b{self._backfills}"
        for number, (_, _, found) in self._target.read(
            remote, dict.fromkeys(self._target.partitions(remote), 0)
        ).items():
            check_range(f"{remote}:{number}", self._histories[topic, number], found, committed=self._committed)

    def _do_groups(self) -> None:
        said = self._command("groups", "apply")
        assert said is not None
        self._look()
        for topic in TOPICS:
            self._read_source(topic)
        if said.exit_code == 0:
            self._check_groups(said)

    # ------------------------------------------------------------ what is seen

    def _read_source(self, topic: str) -> None:
        name = self._topic(topic)
        numbers = self._source.partitions(name)
        compacted = topic == COMPACTED_TOPIC
        starts = {number: 0 if compacted else self._histories[topic, number].read_to for number in numbers}
        for number, (low, high, found) in self._source.read(name, starts).items():
            history = self._histories[topic, number]
            self._starts[topic, number] = low
            if compacted:
                here = {each.id for each in found}
                history.gone |= {each.id for each in history.records if each.id not in here}
            history.add((each for each in found if each.offset >= history.read_to), high)

    def _copy(self, place: Place) -> Copy:
        """What the target's present topic holds of a partition, as it was seen last."""
        topic_id = self._present_ids.get(place[0])
        return self._copies.setdefault((place, topic_id), Copy(topic_id))

    def _look(self) -> None:
        """Read what is new on the target, and check it."""
        for topic in TOPICS:
            name = self._remote(topic)
            numbers = self._target.partitions(name)
            self._present_ids[topic] = self._target.topic_id(name) if numbers else None
            whole = topic == COMPACTED_TOPIC
            starts = {number: 0 if whole else self._copy((topic, number)).read_to for number in numbers}
            for number, (low, high, found) in self._target.read(name, starts).items():
                place = (topic, number)
                copy = self._copy(place)
                copy.start, copy.read_to = low, max(copy.read_to, high)
                copy.records = found if whole else [*copy.records, *found]
                self._ever_copied[place] |= {each.id for each in found}
                if found:
                    check_order(place, self._histories[place], copy, self._strangers, committed=self._committed)

    # ------------------------------------------------------------ what must hold

    def _check_complete(self) -> None:
        for topic in TOPICS:
            self._read_source(topic)
        for place, history in self._histories.items():
            copy = self._copy(place)
            if not history.begun:
                # A flow that has never had anything to copy there knows of nothing that it could miss.
                before = {each.id for each in history.records} if self._from_latest else history.gone
                history.excused |= before - copy.ids()
                history.begun = self._from_latest or history.read_to > self._starts[place]
            lacking = missing(history, copy, committed=self._committed)
            if lacking:
                raise ViolationError(
                    "missing", f"{place}: a run ended with 0, and {len(lacking)} records are not there: {lacking[:5]}"
                )
        self._complete_once = True

    def _check_groups(self, said: Said) -> None:
        """Rows without a reason are in sync."""
        told = {(row["group"], row["topic"], row["partition"]): row for row in _rows(said)}
        for (group, topic, partition), row in told.items():
            if row.get("reason"):
                continue
            place = (str(topic).removeprefix(self._name + "-"), int(str(partition)))
            there = self._target.committed(str(group)).get((self._remote(place[0]), place[1]))
            here = self._source.committed(str(group)).get((str(topic), place[1]))
            what = f"{group} on {place}"
            if there is None or here is None:
                raise ViolationError("group", f"{what} is in sync, and committed {here} and {there}")
            history, copy = self._histories[place], self._copy(place)
            check_group(what, history, copy, here, there, self._strangers, committed=self._committed)

    def settle(self) -> None:
        """Everything wakes up, and the flow must come to a run that ends with 0, by the decisions that it names.

        Raises:
            ViolationError: it does not.
        """
        self._do_wake()
        self._do_unhang(commit=True)
        last: Said | None = None
        for number in range(_SETTLING_ROUNDS):
            last = self._do_run()
            if last.exit_code == 0:
                self._do_groups()
                return
            if "target-not-empty" in last.reasons:
                self._appends = True
                self._write_config()
            for each in last.failures:
                if each.get("reason") in _BY_POSITION:
                    topic = str(each["topic"]).removeprefix(self._name + "-")
                    self._do_position(topic, int(str(each["partition"])), "earliest")
            if last.exit_code == 3:
                self._do_decide("accept" if number % 2 == 0 else "recopy")
        assert last is not None
        texts = [f"{each.get('reason')}: {each.get('what')} {each.get('action')}" for each in last.failures]
        raise ViolationError("stuck", "; ".join(texts) or last.text[-1000:])


def _rows(said: Said) -> Iterator[dict[str, object]]:
    rows = said.document.get("rows") or []
    return iter(rows)
