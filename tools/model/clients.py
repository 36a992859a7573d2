"""Cutovers with groups of real clients: Java, librdkafka, and one that commits only what it has read.

Groups read parts of topics on the source, some in transactions, some partitions empty. The target has more partitions.
A cutover moves all of them, and they read to the ends on the target, with `auto.offset.reset=latest`. There they read a
part of further records, and a failback moves them home. Each record is read once by each group; a record that is not is
in a partition that a gate of the cutover has named with the group.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from mirror_lib.features.demo.jars import classpath, fetch, kafka_broker
from mirror_lib.spark.java import find_java
from tools.model.commands import Command, Said
from tools.model.expected import ViolationError
from tools.model.state import Clusters
from tools.model.world import Cluster

_KINDS = ("java", "librdkafka", "only-read")
_PARTITIONS, _TOPICS = "uncommitted partitions", "uncommitted topics"
_PROGRAM = Path(__file__).with_name("Clients.java")
_SECONDS = 60.0
_ALL = 1 << 30
#: Group, topic and partition of the source.
_Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class _Way:
    """A cutover, or a failback."""

    name: str
    flow: str
    #: Where the groups are.
    here: Cluster
    #: Before the names of topics there.
    prefix: str
    #: The pattern of these topics.
    topics: str


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    kind: str
    protocol: str
    topics: tuple[str, ...]
    #: Records that it reads on the source.
    most: int


class ClientMove:
    """A cutover of some topics with all groups of their clients."""

    def __init__(
        self, on: Clusters, folder: Path, name: str, *, seed: int, groups: int, without: Sequence[str] = ()
    ) -> None:
        """Nothing is made yet.

        Args:
            without: disabled protections.
        """
        self._source, self._target, self._folder, self._name = on.source, on.target, folder, name
        self._without = tuple(without)
        self._random = Random(seed)
        draw = self._random
        #: Partitions on the source and on the target.
        self._topics = {
            f"{name}-t{number}": (size, size + draw.randint(0, 2))
            for number in range(3)
            for size in (draw.randint(1, 5),)
        }
        self._groups = [
            _Group(
                f"{name}-g{number}",
                _KINDS[number % len(_KINDS)],
                draw.choice(("classic", "consumer")),
                tuple(sorted(draw.sample(sorted(self._topics), draw.randint(1, 2)))),
                draw.choice((1, 10, 40, _ALL)),
            )
            for number in range(groups)
        ]
        self._resets = draw.choice((True, False))
        self._most: dict[_Group, int] = {}
        #: Values by source topic and partition, with their offsets where the groups are; others are behind all offsets.
        self._written: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
        self._there = _Way("there", "a->b", self._source, "", f"{name}-t.*")
        self._home = _Way("home", "b->a", self._target, "a.", f"a[.]{name}-t.*")

    def play(self) -> str:
        """Move everything; return figures.

        Raises:
            ViolationError: a record was skipped or repeated, and no gate has named it.
        """
        self._folder.mkdir(parents=True)
        self._write_config("")
        for topic, (size, on_target) in self._topics.items():
            self._source.create(topic, size)
            self._target.create(f"a.{topic}", on_target)
            for number in range(size):
                self._write(self._source, topic, topic, number, self._random.choice((0, 3, 20)), transactions=True)
        self._read(self._source, "earliest")
        for topic, (size, _) in self._topics.items():
            self._write(self._source, topic, topic, self._random.randrange(size), 5)
        self._command("run", "--flow", "a->b")
        named, gate = self._move(self._there)
        self._write_to_target(4, since=_ALL)
        figures = [self._compare(self._there, self._read(self._target, "latest"), named, gate)]
        # They have read all of that; of what comes now they read a part.
        for values in self._written.values():
            values.update(dict.fromkeys(values, -1))
        self._write_to_target(6)
        self._read(self._target, "latest", parts=True)
        # The source gets the partitions that it lacks.
        self._command("topics", "apply", "--flow", self._home.flow)
        self._command("run", "--flow", self._home.flow)
        named, gate = self._move(self._home)
        figures.append(self._compare(self._home, self._read(self._source, "latest"), named, gate))
        return "; home: ".join(figures)

    def _write_to_target(self, count: int, *, since: int | None = None) -> None:
        for topic, (_, on_target) in self._topics.items():
            for number in range(on_target):
                self._write(self._target, f"a.{topic}", topic, number, count, counts_as=since)

    def _write_config(self, more: str) -> None:
        (self._folder / "mirror.properties").write_text(
            f"clusters = a, b\na.bootstrap.servers = {self._source.servers}\n"
            f"b.bootstrap.servers = {self._target.servers}\n"
            f"a->b.enabled = true\na->b.topics = {self._name}-t.*\na->b.groups = {self._name}-g.*\n"
            f"b->a.enabled = true\nb->a.mirror.failback = true\n"
            f"b->a.topics = {', '.join('a[.]' + topic for topic in self._topics)}\nb->a.groups = {self._name}-g.*\n"
            f"b->a.mirror.topics.rename = {', '.join(f'a.{topic}:{topic}' for topic in self._topics)}\n"
            "a.consumer.isolation.level = read_committed\nreplication.factor = 1\n"
            "offset-syncs.topic.replication.factor = 1\ncheckpoints.topic.replication.factor = 1\n"
            "a.offset.storage.replication.factor = 1\nb.offset.storage.replication.factor = 1\n"
            "emit.heartbeats.enabled = false\nsync.group.offsets.enabled = true\n"
            f"mirror.ledger.url = sqlite:///{self._folder}/ledger.sqlite3\n{more}\n"
        )

    def _write(
        self,
        cluster: Cluster,
        written_to: str,
        topic: str,
        partition: int,
        count: int,
        *,
        transactions: bool = False,
        counts_as: int | None = None,
    ) -> None:
        """Write values; in transactions the half of them is aborted.

        Args:
            counts_as: in place of their offsets, if the groups are on the other side.
        """
        own = {"transactional.id": f"{topic}-{partition}"} if transactions else {}
        producer = Producer({"bootstrap.servers": cluster.servers, "log_level": 0, "linger.ms": 5, **own})
        kept = self._written[topic, partition]
        if transactions:
            producer.init_transactions(_SECONDS)
        for commits in (True, False) if transactions and count else (True,):
            if transactions:
                producer.begin_transaction()
            offsets: dict[str, int] = {}
            for each in range(count):
                value = f"{topic}/{partition}/{len(kept) + each}{'' if commits else '/aborted'}"
                producer.produce(written_to, value.encode(), partition=partition, on_delivery=_note(offsets))
            if producer.flush(_SECONDS) or len(offsets) != count:
                raise TimeoutError(f"the model could not write to {written_to}")
            if commits:
                kept.update(offsets if counts_as is None else dict.fromkeys(offsets, counts_as))
            if transactions:
                (producer.commit_transaction if commits else producer.abort_transaction)(_SECONDS)

    # ------------------------------------------------------------ the cutover

    def _command(self, *words: str) -> Said:
        typed = [*words, "--config", str(self._folder / "mirror.properties"), "--json"]
        said = Command(typed, self._folder, without=self._without).finish()
        assert said is not None
        if said.exit_code not in (0, 3):
            raise ViolationError("crashed", f"{' '.join(words)}: exit {said.exit_code} {said.text[-1500:]}")
        return said

    def _move(self, way: _Way) -> tuple[set[_Place], str]:
        """Return the partitions of groups that a gate has named, and the words of the gates."""
        rows = self._command("groups", "plan", "--flow", way.flow).document["rows"]
        named = {
            (str(row["group"]), str(row["topic"]).removeprefix(way.prefix), int(row["partition"]))
            for row in rows
            if row["reason"] == "partition-uncommitted"
        }
        # Topics without any offset of a group that reads them: its members say so.
        unknown = {
            group: topics
            for group in self._groups
            if (topics := set(group.topics) - {topic for topic, _ in self._committed(way, group)})
        }
        words = (
            "--flow",
            way.flow,
            "--topics",
            way.topics,
            "--groups",
            f"{self._name}-g.*",
            "--may-split",
            ".*",
        )
        quick = ("--quiet-seconds", "0.3", "--drain-seconds", "10", "--watch-seconds", "0")
        first, second = f"{way.name}-first", f"{way.name}-second"
        self._command("cutover", "new", first, *words, *quick)
        with self._members(way, unknown):
            stopped = self._command("cutover", "run", first)
        attempts = [each for each in stopped.document["attempts"] if each["step"] == "rehearse"]
        if not attempts:
            raise ViolationError("stuck", f"cutover {first} is not rehearsed: {_failed(stopped)}")
        rehearsed = attempts[-1]
        gates = {each["name"]: each["what"] for each in rehearsed["gates"] if not each["passed"]}
        # The others commit when they stop, for all that is known.
        partly = sum(topics != set(group.topics) for group, topics in unknown.items())
        wanted = {_PARTITIONS: f"{len(named)} partition", _TOPICS: f"{partly} group"}
        wanted = {name: text for name, text in wanted.items() if text[0] != "0"}
        if gates.keys() != wanted.keys() or not all(gates[name].startswith(text) for name, text in wanted.items()):
            raise ViolationError("cutover", f"the gates should say {wanted}, and say {gates}")
        if len(unknown) > partly and not any("committed nothing yet" in each["what"] for each in rehearsed["gates"]):
            raise ViolationError(
                "cutover", f"no gate names the groups that have committed nothing: {rehearsed['gates']}"
            )
        if not gates and not unknown:
            self._finish(first)
            return set(), ""
        self._command("cutover", "rollback", first, "--yes")
        reset = {group.name for group in unknown}
        if self._resets:
            reset |= {group for group, *_ in named}
        else:
            # An operator lets the groups read all records there.
            self._write_config("mirror.group.uncommitted = earliest")
            named = set()
        named |= {
            (group.name, topic, each)
            for group, topics in unknown.items()
            for topic in topics
            for each in range(self._topics[topic][1])
        }
        again = [word for group in sorted(reset) for word in ("--may-reset", group)]
        self._command("cutover", "new", second, *words, *quick, *again)
        self._finish(second)
        return named, ", ".join(" ".join(text.split(" ")[:6]) for text in gates.values())

    @staticmethod
    def _committed(way: _Way, group: _Group) -> dict[tuple[str, int], int]:
        """The offsets of a group before it moves, by source topic and partition."""
        offsets = way.here.committed(group.name).items()
        return {
            (topic.removeprefix(way.prefix), number): offset
            for (topic, number), offset in offsets
            if topic.startswith(way.prefix)
        }

    @contextmanager
    def _members(self, way: _Way, groups: Collection[_Group]) -> Iterator[None]:
        """Let a member of each group be there, that reads and commits nothing."""
        members = [self._consumer(way.here, each, "latest", commits=False) for each in groups]
        try:
            for each, group in zip(members, groups, strict=True):
                each.subscribe([f"{way.prefix}{topic}" for topic in group.topics])
            deadline = time.monotonic() + _SECONDS
            while not all(each.assignment() for each in members):
                if time.monotonic() > deadline:
                    raise TimeoutError("members did not join")
                for each in members:
                    each.poll(0.05)
            yield
        finally:
            for each in members:
                each.close()

    def _finish(self, name: str) -> None:
        word: tuple[str, ...] = ()
        said = Said(0)
        for _ in range(6):
            said = self._command("cutover", "run", name, *word)
            if said.document["state"] == "finished":
                return
            word = ("--confirm", str(said.document["step"]))
            if said.document["state"] != "waiting":
                break
        raise ViolationError("stuck", f"cutover {name} is {said.document['state']}: {_failed(said)}")

    # ------------------------------------------------------------ the clients

    def _read(self, cluster: Cluster, reset: str, *, parts: bool = False) -> Counter[tuple[_Place, str]]:
        """Let all groups read; return what each has read, by source topic and partition, and how often.

        Args:
            parts: not to the ends, as on the source before the first move.
        """
        self._most = {each: each.most if parts or reset == "earliest" else _ALL for each in self._groups}
        on_target = cluster is self._target
        java = [each for each in self._groups if each.kind == "java"]
        others = [each for each in self._groups if each.kind != "java"]
        with ThreadPoolExecutor(5) as pool:
            from_java = pool.submit(self._read_java, cluster, java, reset, on_target=on_target)
            found = [pool.submit(self._read_librdkafka, cluster, each, reset, on_target=on_target) for each in others]
            lines = [*from_java.result(), *(line for each in found for line in each.result())]
        return Counter(((group, topic.removeprefix("a."), number), value) for group, topic, number, value in lines)

    def _wanted(self, group: _Group, *, on_target: bool) -> tuple[list[str], int]:
        return [f"a.{each}" if on_target else each for each in group.topics], self._most[group]

    def _read_java(
        self, cluster: Cluster, groups: Sequence[_Group], reset: str, *, on_target: bool
    ) -> Iterable[tuple[str, str, int, str]]:
        lines = []
        for each in groups:
            topics, most = self._wanted(each, on_target=on_target)
            lines.append(" ".join([each.name, each.protocol, reset, str(most), *topics]))
        jars = classpath(fetch(kafka_broker()))
        done = subprocess.run(
            [str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", jars, str(_PROGRAM), cluster.servers],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            timeout=10 * _SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        words = (line.split(" ") for line in done.stdout.splitlines() if line.startswith(self._name))
        return [(group, topic, int(number), value) for group, topic, number, value in words]

    def _read_librdkafka(
        self, cluster: Cluster, group: _Group, reset: str, *, on_target: bool
    ) -> Iterable[tuple[str, str, int, str]]:
        topics, most = self._wanted(group, on_target=on_target)
        commits_each = group.kind == "only-read"
        reader = self._consumer(cluster, group, reset, commits=not commits_each)
        found: list[tuple[str, str, int, str]] = []
        ended: set[tuple[str, int]] = set()
        deadline = time.monotonic() + _SECONDS
        try:
            reader.subscribe(topics)
            while len(found) < most and not self._has_read_all(reader, ended):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{group} did not read to the ends of {topics}")
                message: Any = reader.poll(0.2)
                if message is None:
                    continue
                place = message.topic(), message.partition()
                if message.error() is None:
                    found.append((group.name, *place, message.value().decode()))
                    if commits_each:
                        reader.commit(message=message, asynchronous=False)
                elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    ended.add(place)
        finally:
            reader.close()
        return found

    @staticmethod
    def _consumer(cluster: Cluster, group: _Group, reset: str, *, commits: bool) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": cluster.servers,
                "group.id": group.name,
                "group.protocol": group.protocol,
                "auto.offset.reset": reset,
                "enable.partition.eof": True,
                "enable.auto.commit": commits,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )

    @staticmethod
    def _has_read_all(reader: Consumer, ended: set[tuple[str, int]]) -> bool:
        assigned: list[TopicPartition] = reader.assignment()
        return bool(assigned) and {(each.topic, each.partition) for each in assigned} <= ended

    # ------------------------------------------------------------ the result

    def _compare(self, way: _Way, read: Counter[tuple[_Place, str]], named: set[_Place], gate: str) -> str:
        """Compare what groups have read after a move with what they had not read before by their commits."""
        figures: Counter[str] = Counter()
        wrong: list[str] = []
        for group in self._groups:
            here = self._committed(way, group)
            for (topic, number), values in self._written.items():
                place = group.name, topic, number
                for value, offset in values.items() if topic in group.topics else ():
                    times = read.pop((place, value), 0)
                    wanted = int(offset >= here.get((topic, number), -1))
                    what = "skipped" if times < wanted else "repeated" if times > wanted else "read"
                    why = " where a gate names it" if place in named else ""
                    figures[what + why] += 1
                    if what == "repeated" or (what == "skipped" and not why):
                        wrong.append(f"{group.kind} {group.protocol} {place} {value} was {what}")
        wrong += [f"{place} {value} was read, and nobody has written it" for place, value in read]
        counts = ", ".join(f"{count} {what}" for what, count in sorted(figures.items()))
        text = f"{len(self._groups)} groups, {len(named)} partitions named; records: {counts}; gates: {gate or '-'}"
        if wrong:
            raise ViolationError("clients", f"{text}\n" + "\n".join(wrong[:20]))
        return text


def _failed(said: Said) -> list[Any]:
    """The failed gates, and the errors, of a cutover's attempts."""
    attempts = said.document["attempts"]
    gates = [each for attempt in attempts for each in attempt["gates"] if not each["passed"]]
    return [*gates, *(attempt["error"] for attempt in attempts if attempt["error"])]


def _note(offsets: dict[str, int]) -> Callable[[Any, Any], None]:
    def delivered(error: Any, message: Any) -> None:
        if error is None:
            offsets[message.value().decode()] = message.offset()

    return delivered
