"""The state of a sequence: its topics, files and clusters, and the records that an ordinary client has read on both
sides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.model.commands import Command
from tools.model.expected import Copy, History, Place, check_offsets, check_order
from tools.model.steps import COMPACTED_TOPIC, GROUPS, LATE_TOPIC, TOPICS
from tools.model.times import Times
from tools.model.world import COMPACTED, WRITTEN_DELETION, Cluster, Transaction

_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of a sequence."""

    source: Cluster
    target: Cluster
    #: Replaces the target when that is rebuilt.
    spare: Cluster


class State:
    """A sequence's own topics, files and ledger, and their observed records."""

    def __init__(
        self,
        clusters: Clusters,
        folder: Path,
        name: str,
        *,
        without: Collection[str] = (),
        times: Times | None = None,
    ) -> None:
        self._source, self._target, self._spare = clusters.source, clusters.target, clusters.spare
        self._folder, self._name = folder, name
        self._config = folder / "mirror.properties"
        self._without = tuple(without)
        self._times = times or Times()
        self._alias = name
        self._histories: dict[Place, History] = defaultdict(History)
        #: By topic id too: a name may be mapped to an earlier topic again.
        self._copies: dict[tuple[Place, str | None], Copy] = {}
        self._present_ids: dict[str, str | None] = {}
        self._ever_copied: dict[Place, set[str]] = defaultdict(set)
        #: Log start offsets of the source.
        self._starts: dict[Place, int] = {}
        #: Records that the model writes to the side that is the copy.
        self._strangers = {WRITTEN_DELETION}
        self._stopped: list[Command] = []
        self._open: list[tuple[Place, Transaction]] = []
        #: A run that writes in transactions was killed or stopped, and none has ended with 0 since: what it wrote last
        #: is open, or aborted, and no reader of committed records sees it.
        self._undecided = False
        self._next = 0
        self._renamed: dict[str, str] = {}
        #: Topics and their former names on the target: a run that was started before still writes there.
        self._former_names: set[tuple[str, str]] = set()
        #: The separator of the default policy; None: topics keep their names.
        self._separator: str | None = "."
        self._guarded = False
        self._committed = False
        self._from_latest = False
        self._complete_once = False
        self._appends = False
        #: Records have the same offsets on both sides.
        self._same = False
        #: Of restored clusters: the true id, and the one that commands see.
        self._shown_ids: dict[str, str] = {}
        #: Topics whose writers are at the target, and the cutover that moved them.
        self._moved: dict[str, str] = {}
        #: Cutovers that moved groups.
        self._moved_groups: set[str] = set()
        #: Partitions that an operator has given up.
        self._given_up: set[Place] = set()
        #: Partitions about which an operator has decided something.
        self._decided: set[Place] = set()
        #: Number of cutovers that were begun.
        self._cutovers = 0
        #: When the ledger was backed up: partitions that were given up, number of cutovers, partitions followed.
        self._backup: tuple[set[Place], int, set[Place]] | None = None
        #: The ledger was restored from a backup, or emptied.
        self._ledger_restored = False
        #: Partitions of which an operator has accepted that the ledger lacks a part.
        self._accepted_unknown: set[Place] = set()
        #: The position topic was deleted.
        self._positions_lost = False
        #: Disks of source and target.
        self._snapshots: dict[str, Any] = {}
        self._target_restored = False
        #: Topics that the flow's patterns do not match, and those that `topics.exclude` names.
        self._unmatched: set[str] = set()
        self._excluded: set[str] = set()
        #: Partitions that a run has ended with 0 for, and those that are accepted as no longer selected.
        self._followed: set[Place] = set()
        self._meant: set[Place] = set()
        #: Topics that were ever created.
        self._created = set(TOPICS) - {LATE_TOPIC}
        #: Seconds that the clock of commands is ahead.
        self._clock = 0.0
        #: The setting for offsets of groups: exact or mm2.
        self._translation = "exact"
        self.said: list[str] = []

    def begin(self) -> None:
        """Create the topics and write the flow's file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for topic in sorted(self._created):
            self._source.create(self._topic(topic), 2, self._configs(topic))
            for number in range(2):
                self._histories[topic, number].compacted = topic == COMPACTED_TOPIC
        self._write_config()

    def _expect_new(self, place: Place, *, late: bool) -> None:
        """Note a new partition.

        Args:
            late: True if the flow had been copied before: then it is copied from its beginning, regardless of the
                flow's first start.
        """
        new = self._histories[place]
        new.compacted = place[0] == COMPACTED_TOPIC
        new.late = late
        new.begun = self._from_latest and late

    @property
    def _ledger_file(self) -> Path:
        return self._folder / "ledger.sqlite3"

    def _write_config(self, *, source: str | None = None, target: str | None = None) -> None:
        back = f"target->{self._alias}"
        lines = {
            "clusters": f"{self._alias}, target",
            f"{self._alias}.bootstrap.servers": source or self._source.servers,
            "target.bootstrap.servers": target or self._target.servers,
            f"{self._alias}->target.enabled": "true",
            f"{self._alias}->target.topics": self._patterns(),
            f"{self._alias}->target.topics.exclude": ", ".join(map(self._topic, sorted(self._excluded))),
            f"{self._alias}->target.groups": f"{self._name}-.*",
            f"{self._alias}->target.mirror.topics.rename": self._pairs(
                {self._topic(topic): name for topic, name in self._renamed.items()}
            ),
            # Copies back what was written to the target after a cutover, and nothing else.
            f"{back}.enabled": "true",
            f"{back}.mirror.failback": "true",
            f"{back}.topics": ", ".join(re.escape(self._remote(topic)) for topic in TOPICS),
            f"{back}.groups": f"{self._name}-.*",
            f"{back}.mirror.topics.rename": self._pairs({self._remote(topic): self._topic(topic) for topic in TOPICS}),
            f"{self._alias}.consumer.isolation.level": "read_committed" if self._committed else "read_uncommitted",
            "replication.factor": "1",
            "replication.policy.separator": self._separator or "",
            "replication.policy.class": _IDENTITY if self._separator is None else "",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "emit.heartbeats.enabled": "false",
            "sync.group.offsets.enabled": "true",
            "mirror.group.translation": self._translation,
            # One task has one thread: when it is stopped before its check, nothing else of it is partly sent.
            "tasks.max": "2" if self._guarded else "1",
            f"{self._alias}->target.mirror.offsets": "same" if self._same else "own",
            "mirror.run.lease.seconds": "3",
            "mirror.retry.max.seconds": "10",
            "mirror.batch.max.bytes": "2048",
            "mirror.batch.passthrough.min.bytes": "1024",
            "mirror.first.start": "latest" if self._from_latest else "earliest",
            "mirror.old.records.in.transactions": str(self._guarded).lower(),
            "mirror.target.existing": "append" if self._appends else "fail",
            "mirror.ledger.url": f"sqlite:///{self._ledger_file}",
        }
        for cluster in (self._alias, "target"):
            lines[f"{cluster}.offset.storage.replication.factor"] = "1"
            lines[f"{cluster}.offset.storage.partitions"] = "3"
        written = {key: value.replace("\\", "\\\\") for key, value in lines.items() if value}
        self._config.write_text("".join(f"{key} = {value}\n" for key, value in written.items()))

    def _patterns(self) -> str:
        matched = ", ".join(self._topic(topic) for topic in TOPICS if topic not in self._unmatched)
        return matched if self._unmatched else f"{self._name}-.*"

    @staticmethod
    def _pairs(names: dict[str, str]) -> str:
        return ", ".join(f"{name}:{other}" for name, other in sorted(names.items()))

    def end(self) -> None:
        """Remove what the sequence made on all clusters."""
        self._end_stopped()
        for _, transaction in self._open:
            transaction.end(commit=False)
        for cluster in (each for each in (self._source, self._target, self._spare) if each.is_running):
            cluster.forget(self._own_topics(cluster), [self._topic(group) for group in GROUPS])

    def _own_topics(self, cluster: Cluster) -> list[str]:
        return [topic for topic in cluster.topics("") if self._name in re.split(r"[._-]", topic)]

    def _end_stopped(self) -> None:
        for each in self._stopped:
            each.kill()
        self._stopped = []

    def _note_names(self) -> None:
        """Remember the names of the target topics before the rules change."""
        self._former_names |= {(topic, self._remote(topic)) for topic in TOPICS}

    def _look_at_former_names(self) -> None:
        for topic, name in self._former_names:
            starts = dict.fromkeys(self._target.partitions(name), 0)
            for number, (_, _, found) in self._target.read(name, starts).items():
                self._ever_copied[topic, number] |= {each.id for each in found}

    def _is_selected(self, topic: str) -> bool:
        return topic not in self._unmatched | self._excluded

    def _topic(self, topic: str) -> str:
        return f"{self._name}-{topic}"

    def _remote(self, topic: str) -> str:
        made = "" if self._separator is None else f"{self._alias}{self._separator}"
        return self._renamed.get(topic, f"{made}{self._topic(topic)}")

    @staticmethod
    def _configs(topic: str) -> dict[str, str]:
        return COMPACTED if topic == COMPACTED_TOPIC else {}

    def _place(self, topic: str, partition: int) -> Place:
        """Return an existing partition: a script may name one that only a grown topic has."""
        name = self._topic(topic)
        return name, partition % len(self._source.partitions(name))

    def _ids(self, count: int) -> list[str]:
        first, self._next = self._next, self._next + count
        return [f"{self._name}/{number}" for number in range(first, first + count)]

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
            own = (each for each in found if each.offset >= history.read_to and each.id not in self._strangers)
            history.add(own, high)

    def _read_sources(self) -> None:
        for topic in TOPICS:
            self._read_source(topic)

    def _copy(self, place: Place) -> Copy:
        """Return the last observed content of a partition in the target's present topic."""
        topic_id = self._present_ids.get(place[0])
        return self._copies.setdefault((place, topic_id), Copy(topic_id))

    def _look(self, written: Collection[str] = ()) -> None:
        """Read new records of the target, and check them.

        Args:
            written: ids that were written there since, after a cutover.
        """
        for topic in TOPICS:
            name = self._remote(topic)
            numbers = self._target.partitions(name)
            self._present_ids[topic] = self._target.topic_id(name) if numbers else None
            whole = topic == COMPACTED_TOPIC
            starts = {number: 0 if whole else self._copy((topic, number)).read_to for number in numbers}
            for number, (low, high, found) in self._target.read(name, starts).items():
                place = (topic, number)
                copy, history = self._copy(place), self._histories[place]
                history.write_away(each for each in found if each.id in written)
                copy.start, copy.read_to = low, max(copy.read_to, high)
                copy.records = found if whole else [*copy.records, *found]
                self._ever_copied[place] |= {each.id for each in found}
                if self._same:
                    check_offsets(place, history, found, self._strangers)
                if found:
                    check_order(place, history, copy, self._strangers, committed=self._committed)
