"""The limits of topics on both sides: compared before a copy, and passed to it so that it knows what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import TopicConfigs
from mirror_lib.cluster.admin.results import batches
from mirror_lib.config.copy_settings import CopySettings, PoisonPolicy
from mirror_lib.config.schedule import longest_interval_seconds
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.past_runs.retention import Retention, is_compacted, tombstones_kept_ms
from mirror_lib.records.rules import RecordRules

#: The broker's default for `max.message.bytes`, used if a topic's configs cannot be read.
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
#: Java's `Long.MAX_VALUE`, which means no limit.
_UNBOUNDED = 2**63 - 1
_TOPICS_NAMED = 5
#: Enough for several requests in flight at the same time.
_TOPICS_AT_ONCE = 4_000


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """The limits of one topic, broker defaults included; a limit that is None does not exist.

    Attributes:
        max_message_bytes: maximum bytes of a batch, as it is sent.
        timestamp_before_max_ms: how far in the past timestamps may be; None with log-append times too.
        timestamp_after_max_ms: how far in the future they may be.
        log_append_time: the broker replaces the records' timestamps.
        compacted: records need a key.
        tombstones_kept_ms: minimum time that a tombstone is kept, None if the topic is not compacted.
        retention_ms: age from which records are deleted.
        retention_bytes: size of a partition from which its oldest records are deleted.
    """

    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    timestamp_before_max_ms: int | None = None
    timestamp_after_max_ms: int | None = None
    log_append_time: bool = False
    compacted: bool = False
    tombstones_kept_ms: int | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None

    @classmethod
    def of(cls, configs: TopicConfigs) -> TopicLimits:
        """The limits by a topic's configs, read as by brokers (Java `LogConfig`)."""
        append_time = configs.has_append_times
        retention = Retention.of(configs)
        return cls(
            max_message_bytes=configs.number("max.message.bytes") or DEFAULT_MAX_MESSAGE_BYTES,
            timestamp_before_max_ms=None
            if append_time
            else _timestamp_limit(configs, "message.timestamp.before.max.ms"),
            timestamp_after_max_ms=None if append_time else _timestamp_limit(configs, "message.timestamp.after.max.ms"),
            log_append_time=append_time,
            compacted=is_compacted(configs),
            tombstones_kept_ms=tombstones_kept_ms(configs),
            retention_ms=None if retention.seconds is None else round(retention.seconds * 1000),
            retention_bytes=retention.bytes,
        )

    def max_batch_bytes(self, settings: CopySettings) -> int:
        """Maximum bytes of a batch that the topic accepts and that fits into a request of the flow."""
        return min(self.max_message_bytes, settings.request_max_bytes or self.max_message_bytes)


def _timestamp_limit(configs: TopicConfigs, name: str) -> int | None:
    """A limit of timestamps; if it is not set, or unknown before Kafka 3.6, the older config counts (KIP-937)."""
    for candidate in (name, "message.timestamp.difference.max.ms"):
        value = configs.number(candidate)
        if value is not None and value != _UNBOUNDED:
            return value
    return None


def record_rules(source: TopicLimits | None, target: TopicLimits) -> RecordRules:
    """The rules that the copy checks for each record.

    A compacted source refuses records without a key too, so keys are then not checked: that would mean decompressing
    every batch. The few records from before it was compacted are refused by the target.
    """
    return RecordRules(
        timestamp_before_max_ms=target.timestamp_before_max_ms,
        timestamp_after_max_ms=target.timestamp_after_max_ms,
        needs_key=target.compacted and not (source is not None and source.compacted),
    )


def read_limits(admin: ClusterAdmin, topics: Iterable[str]) -> dict[str, TopicLimits]:
    """The limits of the topics that exist and whose configs can be read; one request per some hundred topics.

    A topic has dozens of configs, so they are freed as soon as the limits are known.
    """
    limits: dict[str, TopicLimits] = {}
    known: dict[TopicLimits, TopicLimits] = {}
    for names in batches(sorted(set(topics)), _TOPICS_AT_ONCE):
        for topic, configs in admin.topic_configs(names).items():
            found = TopicLimits.of(configs)
            # Most topics of a cluster have the same limits.
            limits[topic] = known.setdefault(found, found)
    return limits


def read_rules(
    source: ClusterAdmin, limits: Mapping[str, TopicLimits], remote: Mapping[str, str]
) -> dict[str, RecordRules]:
    """The rules that the copy checks, by source topic.

    Args:
        limits: of the target topics.
        remote: target topic by source topic.
    """
    known = {topic: limits[target] for topic, target in remote.items() if target in limits}
    # The source's limits matter only if the target needs keys.
    sources = read_limits(source, [topic for topic, target in known.items() if target.compacted])
    return {topic: record_rules(sources.get(topic), target) for topic, target in known.items()}


class LimitKind(StrEnum):
    """Kinds of limits that are tighter on a target topic than on its source."""

    SIZE = "size"
    TIMESTAMP_BEFORE = "timestamp-before"
    TIMESTAMP_AFTER = "timestamp-after"
    LOG_APPEND_TIME = "log-append-time"
    KEY = "key"
    RETENTION = "retention"


_REPLACES = "The target replaces timestamps (message.timestamp.type=LogAppendTime)."
_ACTIONS = {
    LimitKind.SIZE: "raise max.message.bytes of the target topics (`mirror configs apply` copies the source's)",
    LimitKind.TIMESTAMP_BEFORE: "raise message.timestamp.before.max.ms of the target topics",
    LimitKind.TIMESTAMP_AFTER: "raise message.timestamp.after.max.ms of the target topics",
    LimitKind.LOG_APPEND_TIME: "set message.timestamp.type=CreateTime on the target topics",
    LimitKind.RETENTION: "if that is not intended, raise retention.ms and retention.bytes of the target topics; "
    "use.defaults.from=source copies the source's values",
    LimitKind.KEY: "remove `compact` from cleanup.policy of the target topics",
}


#: Limits of target topics to be created, given target topics by source topic.
NewLimits = Callable[[Mapping[str, str]], Mapping[str, "TopicLimits"]]


@dataclass(frozen=True, slots=True)
class LimitWarning:
    """Target topics that may accept or keep less than their sources hold; whether such records exist is unknown."""

    kind: LimitKind
    #: Source topics, in order.
    topics: tuple[str, ...]
    #: The difference, with the numbers of the first topic.
    what: str

    def text(self, policy: PoisonPolicy) -> str:
        """The warning with its consequence and what to do."""
        named = ", ".join(self.topics[:_TOPICS_NAMED])
        more = f" and {len(self.topics) - _TOPICS_NAMED} more" if len(self.topics) > _TOPICS_NAMED else ""
        return f"{self.what} Topics: {named}{more}. {_consequence(self.kind, policy)}; {_ACTIONS[self.kind]}."


def _consequence(kind: LimitKind, policy: PoisonPolicy) -> str:
    if kind is LimitKind.LOG_APPEND_TIME:
        return "Each record gets the time of its copy"
    if kind is LimitKind.RETENTION:
        return "The target deletes such records, possibly right after they were copied, and no run fails"
    if policy is PoisonPolicy.FAIL:
        return "A partition stops before the first such record (mirror.poison.policy=fail)"
    done = "written to the quarantine topic" if policy is PoisonPolicy.QUARANTINE else "skipped"
    return f"Such records are {done} (mirror.poison.policy={policy.value})"


def compare_limits(
    remote: Mapping[str, str], sources: Mapping[str, TopicLimits], targets: Mapping[str, TopicLimits]
) -> list[LimitWarning]:
    """Compare target topics with their sources, by kind. Topics with unknown limits are skipped.

    Args:
        remote: target topic by source topic.
    """
    found: dict[LimitKind, list[tuple[str, str]]] = {kind: [] for kind in LimitKind}
    for topic, target in sorted(remote.items()):
        if topic in sources and target in targets:
            for kind, what in _differences(sources[topic], targets[target]):
                found[kind].append((topic, what))
    return [LimitWarning(kind, tuple(topic for topic, _ in each), each[0][1]) for kind, each in found.items() if each]


def _differences(source: TopicLimits, target: TopicLimits) -> Iterator[tuple[LimitKind, str]]:
    if target.max_message_bytes < source.max_message_bytes:
        yield (
            LimitKind.SIZE,
            f"The target accepts batches up to {target.max_message_bytes:,} bytes, the source up to "
            f"{source.max_message_bytes:,}: a single record may be too large.",
        )
    # The limit of the source applied to the age of records at their write; they are older now.
    if target.timestamp_before_max_ms is not None:
        yield (
            LimitKind.TIMESTAMP_BEFORE,
            f"The target rejects records older than {target.timestamp_before_max_ms:,} ms.",
        )
    if _narrower(target.timestamp_after_max_ms, source.timestamp_after_max_ms) and not source.log_append_time:
        yield (
            LimitKind.TIMESTAMP_AFTER,
            f"The target rejects timestamps more than {target.timestamp_after_max_ms:,} ms in the future, which the "
            "source accepts.",
        )
    if target.log_append_time:
        yield LimitKind.LOG_APPEND_TIME, _REPLACES
    if target.compacted and not source.compacted:
        yield LimitKind.KEY, "The target is compacted and rejects records without a key; the source is not compacted."
    if _narrower(target.retention_ms, source.retention_ms):
        kept = "without limit" if source.retention_ms is None else f"for {duration(source.retention_ms / 1000)}"
        there = duration((target.retention_ms or 0) / 1000)
        yield LimitKind.RETENTION, f"The target keeps records for {there} (retention.ms), the source {kept}."
    elif _narrower(target.retention_bytes, source.retention_bytes):
        kept = "without limit" if source.retention_bytes is None else f"{source.retention_bytes:,} bytes"
        there = f"{target.retention_bytes:,} bytes"
        yield LimitKind.RETENTION, f"The target keeps {there} per partition (retention.bytes), the source {kept}."


def timestamp_warnings(topics: Sequence[str], policy: PoisonPolicy) -> tuple[str, ...]:
    """The warnings of a run about topics whose target replaces timestamps."""
    return (LimitWarning(LimitKind.LOG_APPEND_TIME, tuple(topics), _REPLACES).text(policy),) if topics else ()


def _narrower(target: int | None, source: int | None) -> bool:
    return target is not None and (source is None or target < source)


def limit_warnings(source: ClusterAdmin, target: ClusterAdmin, remote: Mapping[str, str]) -> Sequence[LimitWarning]:
    """Read the limits of both sides, one request per some hundred topics each, and compare them."""
    return compare_limits(remote, *_both_limits(source, target, remote))


def _both_limits(
    source: ClusterAdmin, target: ClusterAdmin, remote: Mapping[str, str]
) -> tuple[Mapping[str, TopicLimits], Mapping[str, TopicLimits]]:
    targets = read_limits(target, remote.values())
    return read_limits(source, [topic for topic, there in remote.items() if there in targets]), targets


def topic_warnings(
    source: ClusterAdmin,
    target: ClusterAdmin,
    remote: Mapping[str, str],
    *,
    policy: PoisonPolicy,
    schedule: str | None,
    to_create: NewLimits | None = None,
) -> list[str]:
    """Read the limits of both sides, one request per some hundred topics each, and compare them and the schedule.

    Args:
        remote: target topic by source topic.
        policy: the flow's, for records that its target topics refuse.
        schedule: the flow's.
        to_create: limits of target topics that do not exist yet, by target topic.
    """
    targets = read_limits(target, remote.values())
    missing = {topic: there for topic, there in remote.items() if there not in targets}
    if to_create is not None and missing:
        targets |= to_create(missing)
    sources = read_limits(source, [topic for topic, there in remote.items() if there in targets])
    warnings = [each.text(policy) for each in compare_limits(remote, sources, targets)]
    return warnings + deletion_warnings(sources, schedule)


def retention_warnings(
    source: ClusterAdmin, target: ClusterAdmin, remote: Mapping[str, str], policy: PoisonPolicy
) -> tuple[str, ...]:
    """The warnings of a run that starts to copy topics whose target deletes records earlier than their source."""
    found = limit_warnings(source, target, remote) if remote else ()
    return tuple(each.text(policy) for each in found if each.kind is LimitKind.RETENTION)


def deletion_warnings(sources: Mapping[str, TopicLimits], schedule: str | None) -> list[str]:
    """Warnings about compacted topics that remove tombstones before the next scheduled run.

    Args:
        sources: limits by source topic.
        schedule: as `parse_schedule` takes it.
    """
    interval = longest_interval_seconds(schedule)
    if interval is None:
        return []
    short = sorted(
        (each.tombstones_kept_ms, topic)
        for topic, each in sources.items()
        if each.tombstones_kept_ms is not None and each.tombstones_kept_ms < interval * 1000
    )
    if not short:
        return []
    named = ", ".join(topic for _, topic in short[:_TOPICS_NAMED])
    more = f" and {len(short) - _TOPICS_NAMED} more" if len(short) > _TOPICS_NAMED else ""
    return [
        f"Two runs of mirror.schedule={schedule} may be {duration(interval)} apart, but the source keeps tombstones "
        f"of compacted topics only for {duration(short[0][0] / 1000)} (delete.retention.ms). Topics: {named}{more}. "
        "Keys that are deleted and cleaned in between remain on the target; raise delete.retention.ms of the source "
        "topics above the longest pause of the flow, or run it more often."
    ]
