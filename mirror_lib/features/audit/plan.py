"""What an audit compares: pairs of topics, with both logs as they are at its beginning, and what cannot be compared."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec, TopicConfigs
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.kafka_errors import SecurityDisabledError
from mirror_lib.counted import counted
from mirror_lib.errors import AuthorizationError, MirrorError, TopicMissingError
from mirror_lib.features.audit.differences import AuditedFlow, Difference, acl_differences, config_differences
from mirror_lib.features.audit.model import (
    DEFAULT_MEMORY_BYTES,
    AuditJob,
    AuditReport,
    KeyedTopic,
    PartitionPair,
    PartitionReport,
    Verdict,
)
from mirror_lib.features.audit.pairs import Pairing, TopicPair, pair_topics
from mirror_lib.features.audit.sampling import Sample
from mirror_lib.past_runs.retention import is_compacted
from mirror_lib.planning.model import WHOLE_TOPIC
from mirror_lib.topology.names import TopicPartition

_NAME_PAIR = "Name the copy with --pair SOURCE=TARGET."
_MERGED_BY_KEY = "the copy has other partitions and records of other sources: which belong together cannot be seen"

_OTHER_PARTITIONS = "the copy has other partitions: its records cannot have the offsets of the source"


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What to audit, and how."""

    selected: Callable[[str], bool]
    named: tuple[TopicPair, ...] = ()
    #: Of the flow; None to find a topic's copy by the names that the target has.
    rules: AuditedFlow | None = None
    #: Epoch milliseconds: older records are not compared; None for all.
    since: int | None = None
    wait_seconds: float = 60.0
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    read_committed: bool = True
    processes: int = 1
    ignored_headers: tuple[str, ...] = ()
    #: Compare no timestamps.
    ignore_times: bool = False
    #: Records are to have the offsets that they have on the source; those of a flow by its setting.
    same_offsets: bool = False
    #: Other sources write to the copies, too.
    merged: bool = False
    #: Compare only some ranges of each partition, and all of it if one of them is not equal.
    sample: Sample | None = None
    #: File of what is done, from which an interrupted audit continues; it is deleted at the end.
    resume: Path | None = None

    def __post_init__(self) -> None:
        """Take over what the flow promises."""
        if self.rules is not None and self.rules.config.copy_settings.same_offsets:
            object.__setattr__(self, "same_offsets", True)


def plan_audit(source: Connection, target: Connection, options: AuditOptions) -> tuple[AuditJob, AuditReport]:
    """Pair topics and partitions, and read the ends of both logs; the report holds what cannot be compared.

    Raises:
        MirrorError: a cluster cannot be reached.
    """
    began = int(time.time() * 1000)
    with ClusterAdmin(source) as here, ClusterAdmin(target) as there:
        pairing = pair_topics(
            here.list_topics(),
            there.list_topics(),
            selected=options.selected,
            named=options.named,
            copy_of=None if options.rules is None else options.rules.topology.remote_topic,
        )
        clusters = here.cluster_id(), there.cluster_id()
        found = _compared(pairing, here, there, options, same=clusters[0] is not None and clusters[0] == clusters[1])
    job = AuditJob(
        source,
        target,
        tuple(found.pairs),
        tuple(found.topics),
        awaited_until=began / 1000 + options.wait_seconds,
        memory_bytes=options.memory_bytes,
        read_committed=options.read_committed,
        ignored_headers=options.ignored_headers,
        ignore_times=options.ignore_times,
        same_offsets=options.same_offsets,
        sample=options.sample,
        clusters=clusters,
        journal=options.resume,
    )
    if not any((pairing.pairs, pairing.alone, pairing.ambiguous)):
        found.notes.append("No topic of the source matches --topics; internal topics are never compared.")
    report = AuditReport(
        tuple(found.problems),
        pairing.alone,
        pairing.ambiguous,
        tuple(found.notes),
        began_at=began,
        differences=tuple(found.differences),
        since=options.since,
    )
    return job, report


def impossible(pair: TopicPair, why: str, action: str) -> PartitionReport:
    source, target = (TopicPartition(name, WHOLE_TOPIC) for name in pair)
    return PartitionReport(source, target, Verdict.UNVERIFIABLE, why=why, action=action)


@dataclass(slots=True)
class _Found:
    """What of the pairs can be compared, and what not."""

    pairs: list[PartitionPair] = field(default_factory=list)
    topics: list[KeyedTopic] = field(default_factory=list)
    problems: list[PartitionReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)


class _Side:
    """What one cluster says about the topics of its side."""

    def __init__(self, admin: ClusterAdmin, topics: Collection[str], options: AuditOptions) -> None:
        described, configs = admin.describe_topics(topics), admin.topic_configs(topics)
        self.errors: dict[str, MirrorError] = dict(described.errors)
        self.ids = {name: found.topic_id for name, found in described.items()}
        self.partitions = {name: len(found.partitions) for name, found in described.items()}
        self.unread = [each for each in configs.errors.values() if isinstance(each, AuthorizationError)]
        self.configs = dict(configs)
        self.append_times = {name for name, found in configs.items() if found.has_append_times}
        self.compacted = {name for name, found in configs.items() if is_compacted(found)}
        places = [TopicPartition(name, each) for name, count in self.partitions.items() for each in range(count)]
        starts = admin.list_offsets(places, OffsetSpec.EARLIEST)
        ends = admin.list_offsets(places, OffsetSpec.LAST_STABLE if options.read_committed else OffsetSpec.LATEST)
        since = {} if options.since is None else admin.offsets_at(dict.fromkeys(places, options.since))
        self.logs: dict[TopicPartition, tuple[int, int]] = {}
        for place in places:
            start, end = starts[place], ends[place]
            first = since.get(place, start)
            failed = start.error or end.error or first.error
            if failed is None:
                # All records are older.
                begin = end.offset if first.offset < 0 else max(start.offset, min(first.offset, end.offset))
                self.logs[place] = begin, end.offset
            else:
                self.errors.setdefault(place.topic, failed)

    def of(self, topic: str) -> tuple[tuple[int, int], ...]:
        """Start and end of the topic's partitions, in order."""
        return tuple(self.logs[TopicPartition(topic, each)] for each in range(self.partitions[topic]))


def _compared(
    pairing: Pairing, source: ClusterAdmin, target: ClusterAdmin, options: AuditOptions, *, same: bool
) -> _Found:
    """Return the pairs with both logs, and what cannot be compared.

    Args:
        same: both sides are the same cluster.
    """
    # The ends of the target come later: what the source has by then is to be there.
    here = _Side(source, {each.source for each in pairing.pairs}, options)
    there = _Side(target, {each.target for each in pairing.pairs}, options)
    found = _Found()
    for topic, copies in pairing.ambiguous.items():
        pair, names = TopicPair(topic, copies[0]), ", ".join(copies)
        found.problems.append(impossible(pair, f"several topics may be the copy: {names}", _NAME_PAIR))
    for name, side in (("source", here), ("target", there)):
        if side.unread:
            found.notes.append(
                f"Configs of {counted(len(side.unread), 'topic')} of the {name} cannot be read (DESCRIBE_CONFIGS): "
                "whether they are compacted is not known, and records that compaction has removed count as missing."
            )
    try:
        found.differences += _differences(options.rules, pairing.pairs, (source, here.configs), (target, there.configs))
    except MirrorError as error:
        found.notes.append(f"ACLs are not compared: {error}")
    sources = Counter(each.target for each in pairing.pairs)
    for pair in pairing.pairs:
        if same and pair.source == pair.target:
            found.problems.append(impossible(pair, "both sides are the same topic of the same cluster", _NAME_PAIR))
            continue
        failed = here.errors.get(pair.source) or there.errors.get(pair.target)
        if isinstance(failed, TopicMissingError):
            found.problems.append(impossible(pair, f"{failed.where} does not exist", "Correct --pair."))
            continue
        if failed is not None:
            found.problems.append(impossible(pair, str(failed), failed.action))
            continue
        mine, theirs = here.of(pair.source), there.of(pair.target)
        merged = options.merged or sources[pair.target] > 1
        if merged and len(mine) != len(theirs):
            found.problems.append(impossible(pair, _MERGED_BY_KEY, "Compare the topics by a program that knows them."))
            continue
        if options.same_offsets and len(mine) != len(theirs):
            found.problems.append(impossible(pair, _OTHER_PARTITIONS, "Compare it without --same-offsets."))
            continue
        ids = here.ids[pair.source], there.ids[pair.target]
        compacted = pair.source in here.compacted, pair.target in there.compacted
        if len(mine) != len(theirs):
            times = pair.target not in there.append_times and not options.ignore_times
            found.topics.append(KeyedTopic(*pair, mine, theirs, *compacted, times, ids))
            continue
        found.pairs += [
            PartitionPair(
                TopicPartition(pair.source, n), TopicPartition(pair.target, n), *a, *b, *compacted, merged, ids=ids
            )
            for n, (a, b) in enumerate(zip(mine, theirs, strict=True))
        ]
    return found


def _differences(
    rules: AuditedFlow | None,
    pairs: Sequence[TopicPair],
    *sides: tuple[ClusterAdmin, Mapping[str, TopicConfigs]],
) -> Iterator[Difference]:
    """Yield the configs, then the ACLs.

    Raises:
        MirrorError: the ACLs cannot be read.
    """
    rules = rules or AuditedFlow.of_pairs(pairs)
    yield from config_differences(rules, pairs, *(configs for _, configs in sides))
    # A cluster without an authorizer allows all.
    with suppress(SecurityDisabledError):
        yield from acl_differences(rules, pairs, *(admin.acls(rules.config.acl_rules.resources) for admin, _ in sides))
