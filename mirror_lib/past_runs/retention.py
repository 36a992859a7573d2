"""When Kafka deletes records of a topic, from its configs."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_lib.cluster.admin.model import TopicConfigs

#: Kafka's own defaults, for brokers that do not report a config (Java `LogConfig`).
_WEEK_MS = 7 * 24 * 3600 * 1000
_GIB = 1024**3
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a topic (Java `UnifiedLog.deleteOldSegments`).

    Kafka deletes whole segments, oldest first: by time if the newest record of a segment is older than `retention.ms`,
    by size while the segments after it hold `retention.bytes` without it. So a record is deleted at the earliest when
    its own age, or the size after it, reaches the bound, and at the latest a segment later.

    Attributes:
        seconds: `retention.ms`; None if age deletes nothing.
        bytes: `retention.bytes`, which is per partition; None if size deletes nothing.
        segment_seconds: `segment.ms`: the maximum difference in age of records in one segment.
        segment_bytes: `segment.bytes`.
        remote: the log is in tiered storage (KIP-405). `retention.ms` and `retention.bytes` apply to the whole log,
            `local.retention.*` only to the part on the brokers; brokers report the size of that part only.
        append_time: record timestamps are from the broker's clock.
        tombstone_seconds: minimum time that a tombstone is kept; None if the topic is not compacted.
    """

    seconds: float | None = None
    bytes: int | None = None
    segment_seconds: float = _WEEK_MS / 1000
    segment_bytes: int = _GIB
    remote: bool = False
    append_time: bool = False
    tombstone_seconds: float | None = None

    @property
    def deletes(self) -> bool:
        """True if records can be deleted because of their age or the log's size."""
        return self.seconds is not None or self.bytes is not None

    @classmethod
    def of(cls, configs: TopicConfigs) -> Retention:
        """Interpret a topic's configs as brokers do.

        Without `delete` in `cleanup.policy` (compacted topics; no policy at all, KIP-1161), retention does not apply.
        """
        policy = configs.value("cleanup.policy")
        deletes = policy is None or "delete" in [part.strip() for part in policy.split(",")]
        milliseconds = _retention_limit(configs, "retention.ms") if deletes else None
        return cls(
            seconds=None if milliseconds is None else milliseconds / 1000,
            bytes=_retention_limit(configs, "retention.bytes") if deletes else None,
            segment_seconds=(configs.number("segment.ms") or _WEEK_MS) / 1000,
            segment_bytes=configs.number("segment.bytes") or _GIB,
            remote=configs.value("remote.storage.enable") == "true",
            append_time=configs.has_append_times,
            tombstone_seconds=None if (kept := tombstones_kept_ms(configs)) is None else kept / 1000,
        )


def is_compacted(configs: TopicConfigs) -> bool:
    """Return True if `compact` is one of the topic's cleanup policies."""
    return "compact" in [part.strip() for part in (configs.value("cleanup.policy") or "").split(",")]


def tombstones_kept_ms(configs: TopicConfigs) -> int | None:
    """Minimum time from the append of a tombstone to its removal, in milliseconds.

    When the cleaner cleans a batch for the first time it gives it a delete horizon, `delete.retention.ms` from then
    (KIP-534, Java `Cleaner`, `MemoryRecords.filterTo`); that may be right after it was written.
    `min.compaction.lag.ms` delays that by the record's timestamp, so it only counts if the broker sets timestamps.
    `max.compaction.lag.ms`, segment sizes and the dirty ratio influence when the cleaner runs, but guarantee nothing.

    Returns:
        None for a topic that is not compacted.
    """
    if not is_compacted(configs):
        return None
    kept = configs.number("delete.retention.ms")
    lag = configs.number("min.compaction.lag.ms") or 0
    return (_DAY_MS if kept is None else kept) + (lag if configs.has_append_times else 0)


def _retention_limit(configs: TopicConfigs, name: str) -> int | None:
    number = configs.number(name)
    return None if number is None or number < 0 else number
