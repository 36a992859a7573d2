"""Carries a sequence out on the clusters, and checks after each step what must hold, whoever copies and however.

What is checked knows nothing of the product but its command line:

- A record on the target is one of the source's, unaltered, and stands there once and in the source's order. Only after
  a decision that says so (`recopy`) the copy begins again behind what is there.
- When a run of the whole flow ends with 0, every record that the source ever held is on the target, but those that a
  command named as lost, or somebody decided about, before.
- A group that is said to be in sync reads next on the target what it would read next on the source.
- What a run stops for can be decided, and then goes on.
"""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from model.commands import Command, Point, Said
from model.steps import TOPICS, Step, text_of
from model.world import Cluster, Seen, produce

_HOUR_MS = 3_600_000
_AGES = {"present": 0, "old": -50 * _HOUR_MS, "future": _HOUR_MS // 2}
_LOST_AT_SOURCE = frozenset({"retention-gap", "source-recreated", "source-truncated"})
#: Needed so that what a killed run has left is over: its lock, in the first place.
_SETTLING_ROUNDS = 6
Place = tuple[str, int]


class ViolationError(Exception):
    """An invariant does not hold."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass(slots=True)
class History:
    """A source partition as it was written: all its records in their order, over all topics of its name."""

    records: list[Seen] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    #: Of the present topic.
    read_to: int = 0
    first_present: int = 0
    #: Ids that the source does not hold any more.
    gone: set[str] = field(default_factory=set)
    #: Ids that need not be on the target, since a command said so or the world took them away there.
    excused: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Copy:
    """A target partition as it is, and where copying may have begun again."""

    topic_id: str | None = None
    records: list[Seen] = field(default_factory=list)
    read_to: int = 0
    start: int = 0
    restarts: list[int] = field(default_factory=list)


class Play:
    """One sequence with topics, files and a ledger of its own."""

    def __init__(
        self, source: Cluster, target: Cluster, folder: Path, name: str, *, without: Collection[str] = ()
    ) -> None:
        self._source, self._target, self._folder, self._name = source, target, folder, name
        self._without = tuple(without)
        self._alias = name
        self._histories: dict[Place, History] = defaultdict(History)
        self._copies: dict[Place, Copy] = defaultdict(Copy)
        self._ever_copied: dict[Place, set[str]] = defaultdict(set)
        self._stopped: list[Command] = []
        self._next = 0
        self.said: list[str] = []

    # ------------------------------------------------------------ the world

    def begin(self) -> None:
        """Create the topics and write the flow's file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for topic in TOPICS:
            self._source.create(self._topic(topic), 2)
        lines = {
            "clusters": f"{self._alias}, target",
            f"{self._alias}.bootstrap.servers": self._source.servers,
            "target.bootstrap.servers": self._target.servers,
            f"{self._alias}->target.enabled": "true",
            f"{self._alias}->target.topics": f"{self._name}-.*",
            f"{self._alias}->target.groups": f"{self._name}-.*",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "target.offset.storage.replication.factor": "1",
            "target.offset.storage.partitions": "3",
            "emit.heartbeats.enabled": "false",
            "sync.group.offsets.enabled": "true",
            "tasks.max": "2",
            "mirror.run.lease.seconds": "3",
            "mirror.retry.max.seconds": "10",
            "mirror.batch.max.bytes": "2048",
            "mirror.batch.passthrough.min.bytes": "1024",
            "mirror.ledger.url": f"sqlite:///{self._folder}/ledger.sqlite3",
        }
        self._config = self._folder / "mirror.properties"
        self._config.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))

    def end(self) -> None:
        """Remove what the sequence made on both clusters."""
        for each in self._stopped:
            each.kill()
        for cluster in (self._source, self._target):
            for topic in cluster.topics(""):
                if self._name in topic:
                    cluster.delete(topic)

    def play(self, steps: Sequence[Step], done: Callable[[], None] = lambda: None) -> None:
        """Carry out all steps, then let everything come to rest.

        Raises:
            ViolationError: an invariant does not hold; its note says after which step.
        """
        for number, step in enumerate(steps):
            try:
                self.step(step)
            except ViolationError as violation:
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
        return f"{self._alias}.{self._topic(topic)}"

    def _place(self, topic: str, partition: int) -> Place:
        """A partition that there is: a script may name one that only a topic that has grown has."""
        name = self._topic(topic)
        return name, partition % len(self._source.partitions(name))

    def _ids(self, count: int) -> list[str]:
        first, self._next = self._next, self._next + count
        return [f"{self._name}/{number}" for number in range(first, first + count)]

    def _do_produce(self, topic: str, partition: int, count: int, age: str, codec: str, batch: int) -> None:
        when = int(time.time() * 1000) + _AGES[age]
        name, partition = self._place(topic, partition)
        produce(self._source, name, partition, self._ids(count), timestamp_ms=when, codec=codec, batch=batch)
        self._read_source(topic)

    def _do_transaction(self, topic: str, partition: int, count: int, commit: bool, age: str) -> None:
        when = int(time.time() * 1000) + _AGES[age]
        name, partition = self._place(topic, partition)
        produce(self._source, name, partition, self._ids(count), timestamp_ms=when, transaction=commit)
        self._read_source(topic)

    def _do_pause(self, seconds: int) -> None:
        time.sleep(seconds)

    def _do_delete_target(self, topic: str, again: bool) -> None:
        name = self._remote(topic)
        if (partitions := self._target.partitions(name)) == []:
            return
        self._target.delete(name)
        if again:
            self._target.create(name, len(partitions))

    def _do_recreate_source(self, topic: str) -> None:
        name = self._topic(topic)
        partitions = len(self._source.partitions(name))
        self._source.delete(name)
        self._source.create(name, partitions)
        for (known, _), history in self._histories.items():
            if known == topic:
                history.gone |= {each.id for each in history.records}
                history.read_to, history.first_present = 0, len(history.records)

    def _do_trim_source(self, topic: str, partition: int, percent: int) -> None:
        history = self._histories[topic, partition]
        present = history.records[history.first_present :]
        if present:
            before = present[len(present) * percent // 100 - 1].offset + 1 if len(present) * percent >= 100 else 0
            self._source.trim(self._topic(topic), partition, before)
            history.gone |= {each.id for each in present if each.offset < before}

    def _do_trim_target(self, topic: str, partition: int, percent: int) -> None:
        copy = self._copies[topic, partition]
        here = [each for each in copy.records if each.offset >= copy.start]
        if here and len(here) * percent >= 100:
            before = here[len(here) * percent // 100 - 1].offset + 1
            self._target.trim(self._remote(topic), partition, before)
            self._histories[topic, partition].excused |= {each.id for each in here if each.offset < before}

    def _do_grow(self, topic: str) -> None:
        count = len(self._source.partitions(self._topic(topic)))
        if count < 4:
            self._source.grow(self._topic(topic), count + 1)

    def _do_commit(self, group: str, topic: str, partition: int, percent: int) -> None:
        name, partition = self._place(topic, partition)
        low, high, _ = self._source.read(name, {partition: 1 << 60})[partition]
        self._source.commit(self._topic(group), name, partition, low + (high - low) * percent // 100)

    # ------------------------------------------------------------ the product

    def _command(self, *words: str, point: Point | None = None) -> Said | None:
        command = Command(self._words(words), self._folder, point=point, without=self._without)
        said = command.finish()
        if said is None:
            self._stopped.append(command)
            self.said.append(f"{' '.join(words)}: stopped")
        else:
            self._note(" ".join(words), said)
        return said

    def _words(self, words: Sequence[str]) -> list[str]:
        return [*words, "--config", str(self._config), "--flow", f"{self._alias}->target", "--json"]

    def _note(self, what: str, said: Said) -> None:
        self.said.append(f"{what}: exit {said.exit_code} {sorted(said.reasons) if said.failures else ''}")
        if said.exit_code not in (0, 1, 2, 3, -9) or "Traceback" in said.text:
            raise ViolationError("crashed", f"{what}: exit {said.exit_code}\n{said.text[-1500:]}")

    def _do_run(self) -> Said:
        said = self._command("run")
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

    def _do_stop(self, nth: int, topic: str, burst: int, age: str) -> None:
        self._burst(topic, burst, age)
        said = self._command("run", point=Point("before-produce", nth, signal.SIGSTOP))
        if said is not None:
            self._after_run(said)

    def _do_wake(self) -> None:
        for each in self._stopped:
            said = each.wake()
            if said is None:
                each.kill()
            else:
                self.said.append(f"woken: exit {said.exit_code} {sorted(said.reasons)}")
        self._stopped = []
        self._look()

    def _after_run(self, said: Said) -> None:
        """What the run has named as lost is excused; when it ended with 0 everything else must be there."""
        self._look()
        for failure in said.failures:
            for place, history in self._histories.items():
                if failure.get("reason") in _LOST_AT_SOURCE and self._means(failure, place):
                    history.excused |= history.gone - self._held(place)
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
            history, copy = self._histories[place], self._copies[place]
            if how == "accept":
                # What was copied and is not there any more is accepted; what was never copied must still come.
                history.excused |= self._ever_copied[place] - self._held(place)
            elif made.get("new_position") is not None:
                copy.restarts.append(copy.read_to if copy.topic_id else 0)
                history.excused |= history.gone - self._held(place)

    def _do_groups(self) -> None:
        said = self._command("groups", "apply")
        assert said is not None
        self._look()
        if said.exit_code == 0:
            self._check_groups(said)

    # ------------------------------------------------------------ what is seen

    def _read_source(self, topic: str) -> None:
        name = self._topic(topic)
        numbers = self._source.partitions(name)
        starts = {number: self._histories[topic, number].read_to for number in numbers}
        for number, (_, high, found) in self._source.read(name, starts).items():
            history = self._histories[topic, number]
            for each in found:
                history.order[each.id] = len(history.records)
                history.records.append(each)
            history.read_to = max(history.read_to, high)

    def _look(self) -> None:
        """Read what is new on the target, and check it."""
        for topic in TOPICS:
            name = self._remote(topic)
            numbers, topic_id = self._target.partitions(name), self._target.topic_id(name)
            for place in [each for each in self._copies if each[0] == topic]:
                if self._copies[place].topic_id != topic_id:
                    self._copies[place] = Copy(topic_id)
            starts = {number: self._copies[topic, number].read_to for number in numbers}
            for number, (low, high, found) in self._target.read(name, starts).items():
                copy = self._copies[topic, number]
                copy.topic_id, copy.start, copy.read_to = topic_id, low, max(copy.read_to, high)
                copy.records += found
                self._ever_copied[topic, number] |= {each.id for each in found}
                if found:
                    self._check_order((topic, number))

    def _held(self, place: Place) -> set[str]:
        copy = self._copies[place]
        return {each.id for each in copy.records if each.offset >= copy.start}

    # ------------------------------------------------------------ what must hold

    def _check_order(self, place: Place) -> None:
        history, copy = self._histories[place], self._copies[place]
        last, restarts = -1, sorted(copy.restarts)
        for each in copy.records:
            while restarts and each.offset >= restarts[0]:
                restarts.pop(0)
                last = -1
            order = history.order.get(each.id)
            if order is None:
                raise ViolationError("foreign", f"{place} target offset {each.offset} holds {each.id!r}")
            if history.records[order].digest != each.digest:
                raise ViolationError("altered", f"{place} target offset {each.offset}: {each.id}")
            if order <= last:
                kind = "repeated" if sum(other.id == each.id for other in copy.records) > 1 else "reordered"
                raise ViolationError(kind, f"{place} target offset {each.offset}: {each.id} came before")
            last = order

    def _check_complete(self) -> None:
        for place, history in self._histories.items():
            held = self._held(place)
            missing = [each.id for each in history.records if each.id not in held and each.id not in history.excused]
            if missing:
                raise ViolationError(
                    "missing", f"{place}: a run ended with 0, and {len(missing)} records are not there: {missing[:5]}"
                )

    def _check_groups(self, said: Said) -> None:
        """Rows without a reason are in sync."""
        told = {(row["group"], row["topic"], row["partition"]): row for row in _rows(said)}
        for (group, topic, partition), row in told.items():
            if row.get("reason"):
                continue
            place = (str(topic).removeprefix(self._name + "-"), int(str(partition)))
            there = self._target.committed(str(group)).get((self._remote(place[0]), place[1]))
            here = self._source.committed(str(group)).get((str(topic), place[1]))
            if there is None or here is None:
                raise ViolationError("group", f"{group} on {place} is in sync, and committed {here} and {there}")
            history, copy = self._histories[place], self._copies[place]
            present = [each for each in history.records[history.first_present :] if each.id not in history.gone]
            wanted = next((each.id for each in present if each.offset >= here), None)
            found = next((each.id for each in copy.records if each.offset >= max(there, copy.start)), None)
            if there > copy.read_to:
                raise ViolationError("group", f"{group} on {place}: committed {there}, the log ends at {copy.read_to}")
            if wanted != found and not (found is None and wanted not in self._held(place) | history.excused):
                raise ViolationError("group", f"{group} on {place} is in sync: reads {found}, on the source {wanted}")

    def settle(self) -> None:
        """Everything wakes up, and the flow must come to a run that ends with 0, by the decisions that it names.

        Raises:
            ViolationError: it does not.
        """
        self._do_wake()
        self._look()
        last: Said | None = None
        for number in range(_SETTLING_ROUNDS):
            last = self._do_run()
            self._look()
            if last.exit_code == 0:
                self._do_groups()
                return
            if last.exit_code == 3:
                self._do_decide("accept" if number % 2 == 0 else "recopy")
        assert last is not None
        texts = [f"{each.get('reason')}: {each.get('what')} {each.get('action')}" for each in last.failures]
        raise ViolationError("stuck", "; ".join(texts) or last.text[-1000:])


def _rows(said: Said) -> Iterator[dict[str, object]]:
    rows = said.document.get("rows") or []
    return iter(rows)
