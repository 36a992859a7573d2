"""Translation of source offsets by the exact offset map: single ones, times, groups, checkpoint folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirror_lib.cluster.admin.groups import GroupAdmin
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import (
    ConfigurationError,
    MirrorError,
    OffsetMapError,
    TopicMissingError,
    Where,
)
from mirror_lib.features.translate.spark_checkpoint import RewrittenCheckpoint, rewrite_checkpoint
from mirror_lib.identity.histories import SOUND_HISTORY, History, LedgerState
from mirror_lib.identity.ledger_positions import lacks_history, open_histories
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.offset_map import Landing, Lookup, OffsetMap
from mirror_lib.printable import printable
from mirror_lib.sync.admins import source_admin, target_admin
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

_REBUILD = "Run the flow if nothing was copied yet; if the ledger was lost, rebuild the map with `mirror map rebuild`."


@dataclass(frozen=True, slots=True)
class Translation:
    """One offset on both sides."""

    source: TopicPartition
    target: TopicPartition
    source_offset: int
    target_offset: int
    #: The result for the offset.
    landing: Landing
    #: Upper bound of duplicates on failover (records) before the source offset: 0 if the map is complete; records not
    #: copied yet if the reader is ahead of the copy; records that may be in a gap of the map.
    duplicates: int = 0

    @property
    def may_miss(self) -> bool:
        """True if the target has offsets before the map: if the ledger lost its beginning, records are missed."""
        return self.landing is Landing.BEFORE and self.target_offset > 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "source_offset": self.source_offset,
            "target_topic": self.target.topic,
            "target_offset": self.target_offset,
            "landing": self.landing.value,
            "duplicates": self.duplicates,
        }


@dataclass(frozen=True, slots=True)
class Untranslated:
    """A partition with a committed offset of a group, without a translation."""

    source: TopicPartition
    offset: int
    error: MirrorError


@dataclass(frozen=True, slots=True)
class GroupTranslation:
    """All committed offsets of a group on the source."""

    group: str
    rows: tuple[Translation, ...]
    #: Partitions of topics that the flow replicates.
    untranslated: tuple[Untranslated, ...]
    #: Topics that the flow does not replicate.
    foreign: tuple[str, ...]


class FlowMaps:
    """The offset maps of one flow, read from the ledger on first use."""

    def __init__(
        self,
        flow: FlowConfig,
        topology: FlowTopology,
        ledger: Ledger,
        histories: Mapping[TopicPartition, History] | None = None,
    ) -> None:
        """Args:
        histories: what the ledger lacks; None if the target, which has the positions, cannot be reached.
        """
        self._flow, self._topology, self._ledger = flow, topology.with_moved_topics(), ledger
        self._maps: dict[TopicPartition, OffsetMap] = {}
        self._histories = histories or {}
        self._open = open_histories(flow.flow, ledger)

    def replicates(self, topic: str) -> bool:
        """True if the flow copies a topic, or copied it until a cutover."""
        return self._topology.replicates(topic)

    def target_of(self, source: TopicPartition) -> TopicPartition:
        """The target partition of a source partition.

        Raises:
            ConfigurationError: the flow has never replicated its topic.
        """
        self._topology.refuse_unselected(source.topic)
        return TopicPartition(self._topology.remote_topic(source.topic), source.partition)

    def of(self, source: TopicPartition) -> OffsetMap:
        """A partition's map; empty if the ledger has none.

        Raises:
            LedgerBehindError: the ledger has another history than the position in Kafka.
            OffsetMapError: a stored segment is damaged.
        """
        if source not in self._maps:
            history = self._histories.get(source, SOUND_HISTORY)
            if not history.is_sound and history.state is not LedgerState.BEHIND:
                raise lacks_history(self._flow.flow, source, history)
            self._maps[source] = OffsetMap.of_segments(self._ledger.segments(str(self._flow.flow), *source))
        return self._maps[source]

    def to_target(self, source: TopicPartition, offset: int) -> Translation:
        """Return where a reader continues on the target.

        Raises:
            OffsetMapError: the ledger has no map of the partition, though the target partition has records.
            MirrorError: as `target_of`; or the map is empty, and the target does not respond.
        """
        target, found = self.target_of(source), self.of(source)
        for history in self._lacking(source):
            if offset < history.following:
                # What was skipped there is unknown: the reader could miss it.
                raise lacks_history(self._flow.flow, source, history)
        if found.empty:
            self._check_never_copied(source, target)
            return Translation(source, target, offset, 0, Landing.BEYOND, offset)
        lookup = found.resume_at(offset)
        if lookup.landing is Landing.HOLE:
            gap = found.to_target(offset).offset - lookup.offset
            return Translation(source, target, offset, lookup.offset, lookup.landing, gap)
        ahead = max(0, offset - found.source_next) if lookup.landing is Landing.BEYOND else 0
        return Translation(source, target, offset, lookup.offset, lookup.landing, ahead)

    def to_source(self, source: TopicPartition, target_offset: int) -> Translation:
        """Return the source offset of a record of the target partition that `source` is copied to.

        Raises:
            OffsetMapError: the ledger has no map of the partition.
            MirrorError: as `target_of`.
        """
        target, found = self.target_of(source), self.of(source)
        if found.empty:
            raise self._unknown(source)
        lookup: Lookup = found.to_source(target_offset)
        for history in self._lacking(source):
            if lookup.landing is not Landing.EXACT and history.first <= lookup.offset <= history.following:
                raise lacks_history(self._flow.flow, source, history)
        return Translation(source, target, lookup.offset, target_offset, lookup.landing)

    def _lacking(self, source: TopicPartition) -> Iterator[History]:
        """The parts of a partition's history that the ledger lacks."""
        for each in (self._histories, self._open):
            if (history := each.get(source)) is not None and history.is_gap:
                yield history

    def _check_never_copied(self, source: TopicPartition, target: TopicPartition) -> None:
        # Without a map, an idle partition and a lost ledger look the same; the target's log distinguishes them.
        with target_admin(self._flow) as admin:
            fact = admin.list_offsets([target], OffsetSpec.LATEST)[target]
        if isinstance(fact.error, TopicMissingError):
            raise TopicMissingError(
                f"the ledger has no offset map of this partition, and {target} does not exist on cluster "
                f"{self._flow.flow.target}: nothing was copied.",
                where=Where(flow=str(self._flow.flow), topic=source.topic, partition=source.partition),
                action="Check topic and partition. A run creates the target partition and copies its records.",
            )
        if fact.error is not None:
            raise fact.error
        if fact.offset > 0:
            raise self._unknown(source)

    def _unknown(self, source: TopicPartition) -> OffsetMapError:
        return OffsetMapError(
            "the ledger has no offset map of this partition.",
            where=Where(flow=str(self._flow.flow), topic=source.topic, partition=source.partition),
            action=_REBUILD,
        )


def source_offsets_at(flow: FlowConfig, source: TopicPartition, times: Sequence[int]) -> list[int]:
    """For each time, the source offset of the first record at or after it; the log end offset if all are older.

    Raises:
        ConfigurationError: the source has no such partition.
        MirrorError: the source does not return the offsets.
    """
    with source_admin(flow) as admin:
        found = [admin.offsets_at({source: time})[source] for time in times]
        if any(fact.error is None and fact.offset < 0 for fact in found):
            end = admin.list_offsets([source], OffsetSpec.LATEST)[source]
            found = [end if fact.error is None and fact.offset < 0 else fact for fact in found]
    for fact in found:
        if isinstance(fact.error, TopicMissingError):
            raise ConfigurationError(
                f"cluster {flow.flow.source} has no partition {source}.",
                where=Where(flow=str(flow.flow)),
                action="Check topic and partition; `mirror map show` lists those that were copied.",
            )
        if fact.error is not None:
            raise fact.error
    return [fact.offset for fact in found]


def translate_group(flow: FlowConfig, maps: FlowMaps, group: str) -> GroupTranslation:
    """Translate all committed offsets of a group on the source. Reads both clusters, changes nothing.

    Raises:
        MirrorError: the group cannot be read.
        ConfigurationError: the group has no committed offsets.
    """
    connection = Connection.from_settings(flow.clients.source_admin)
    with GroupAdmin(connection, flow.admin_timeout_ms / 1000) as admin:
        committed = admin.fetch_committed([group])
    for error in (*committed.errors.values(), *committed.partition_errors.values()):
        raise error
    offsets = {partition: each.offset for partition, each in committed.offsets.get(group, {}).items()}
    if not offsets:
        raise ConfigurationError(
            f"group {printable(group)} has no committed offset on cluster {flow.flow.source}.",
            where=Where(flow=str(flow.flow)),
            action="`mirror groups status` lists groups with committed offsets.",
        )
    return translate_committed(maps, group, offsets)


def translate_committed(maps: FlowMaps, group: str, offsets: Mapping[TopicPartition, int]) -> GroupTranslation:
    """As `translate_group`, for offsets that were already read."""
    rows: list[Translation] = []
    skipped: list[Untranslated] = []
    foreign: set[str] = set()
    for source, offset in sorted(offsets.items()):
        if not maps.replicates(source.topic):
            foreign.add(source.topic)
            continue
        try:
            rows.append(maps.to_target(source, offset))
        except MirrorError as error:
            skipped.append(Untranslated(source, offset, error))
    return GroupTranslation(group, tuple(rows), tuple(skipped), tuple(sorted(foreign)))


@dataclass(frozen=True, slots=True)
class TranslatedCheckpoint:
    """A copied checkpoint folder, and the translation of its newest batch."""

    folder: RewrittenCheckpoint
    newest: tuple[Translation, ...]


def translate_checkpoint(maps: FlowMaps, folder: Path, out: Path) -> TranslatedCheckpoint:
    """Write a copy of a Spark checkpoint folder for the target.

    Raises:
        CheckpointFolderError: a file in the folder cannot be parsed.
        MirrorError: a topic is not replicated, or has no map.
    """

    def place(source: TopicPartition, offset: int | None) -> tuple[TopicPartition, int]:
        if offset is None:
            return maps.target_of(source), 0
        found = maps.to_target(source, offset)
        return found.target, found.target_offset

    done = rewrite_checkpoint(folder, out, place)
    newest = (
        maps.to_target(source, offset)
        for offsets in done.newest.values()
        for source, offset in sorted(offsets.items())
        if offset >= 0
    )
    return TranslatedCheckpoint(done, tuple(newest))


def landing_counts(rows: Iterable[Translation]) -> dict[str, int]:
    """The number of translations by landing."""
    counts = dict.fromkeys((landing.value for landing in Landing), 0)
    for row in rows:
        counts[row.landing.value] += 1
    return counts
