"""Which records each consumer group would skip or read twice if it moved to the target now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.groups import GroupAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import read_checkpoints
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.marks import Positions
from mirror_lib.features.audit.model import GroupReport, Jump, PartitionPair, PartitionReport
from mirror_lib.topology.names import TopicPartition

_CHECKPOINTS = ".checkpoints.internal"
#: Group and target partition.
_Key = tuple[str, TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The offsets of groups before the audit."""

    #: By group and source partition.
    committed: Mapping[_Key, int] = field(default_factory=dict)
    #: By group and target partition: committed there, and of the newest checkpoint.
    there: Mapping[_Key, int] = field(default_factory=dict)
    checkpoints: Mapping[_Key, int] = field(default_factory=dict)
    #: What could not be read.
    errors: tuple[MirrorError, ...] = ()

    def with_marks(self, pairs: Iterable[PartitionPair]) -> tuple[PartitionPair, ...]:
        """The pairs with the offsets for which the walk is to find the places."""
        here, there = defaultdict[TopicPartition, set[int]](set), defaultdict[TopicPartition, set[int]](set)
        for marks, offsets in ((here, self.committed), (there, self.there), (there, self.checkpoints)):
            for (_, partition), offset in offsets.items():
                marks[partition].add(offset)
        return tuple(
            replace(pair, source_marks=tuple(sorted(here[pair.source])), target_marks=tuple(sorted(there[pair.target])))
            for pair in pairs
        )

    def reports(self, partitions: Iterable[PartitionReport]) -> Iterator[GroupReport]:
        """Which records the groups would skip or read twice in partitions that were compared."""
        groups: dict[TopicPartition, list[tuple[str, int]]] = defaultdict(list)
        for (group, partition), offset in sorted(self.committed.items()):
            groups[partition].append((group, offset))
        for each in partitions:
            places = each.positions
            for group, offset in groups.get(each.source, ()) if places is not None else ():
                assert places is not None
                key = group, each.target
                there = {self.checkpoints.get(key), self.there.get(key)} - {None}
                if offset not in places.exact or not there <= places.target.keys():
                    # The partition was compared by an interrupted audit, and the group has moved since.
                    continue
                yield GroupReport(
                    group,
                    each.source,
                    each.target,
                    offset,
                    places.exact[offset].offset,
                    _jump(places, offset, self.checkpoints.get(key)),
                    _jump(places, offset, self.there.get(key)),
                )


def _jump(positions: Positions, committed: int, offset: int | None) -> Jump | None:
    if offset is None:
        return None
    distance = positions.target[offset] - positions.exact[committed].records
    return Jump(offset, max(distance, 0), max(-distance, 0))


def read_groups(source: Connection, target: Connection, pairs: Sequence[PartitionPair]) -> GroupFacts:
    """Read the offsets of all groups in some partitions; what cannot be read is in the result's errors."""
    errors: list[MirrorError] = []
    copies = {pair.source: pair.target for pair in pairs}
    committed = _committed(source, copies.keys(), None, errors)
    names = {group for group, _ in committed}
    if not names:
        return GroupFacts(errors=tuple(errors))
    there = _committed(target, set(copies.values()), names, errors)
    return GroupFacts(committed, there, _checkpoints(target, names, set(copies.values()), errors), tuple(errors))


def _committed(
    connection: Connection, partitions: Iterable[TopicPartition], groups: set[str] | None, errors: list[MirrorError]
) -> dict[_Key, int]:
    wanted = set(partitions)
    try:
        with GroupAdmin(connection) as admin:
            names = groups
            if names is None:
                names = {name for name, each in admin.list_groups().items() if each.kind.of_consumers}
            found = admin.fetch_committed(names)
    except MirrorError as error:
        errors.append(error)
        return {}
    errors += found.errors.values()
    return {
        (group, partition): each.offset
        for group, offsets in found.offsets.items()
        for partition, each in offsets.items()
        if partition in wanted
    }


def _checkpoints(
    target: Connection, groups: set[str], partitions: set[TopicPartition], errors: list[MirrorError]
) -> dict[_Key, int]:
    found: dict[_Key, int] = {}
    try:
        with ClusterAdmin(target) as admin:
            topics = [name for name in admin.list_topics() if name.endswith(_CHECKPOINTS)]
        for topic in topics:
            for each in read_checkpoints(target, topic).entries:
                partition = TopicPartition(each.topic, each.partition)
                if each.group in groups and partition in partitions:
                    found[each.group, partition] = each.downstream_offset
    except MirrorError as error:
        errors.append(error)
    return found
