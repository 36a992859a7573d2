"""When Kafka deletes records of a topic, by its configs."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_lib.cluster.admin import TopicConfigs

#: Kafka's own defaults, for brokers that do not tell one of them (Java `LogConfig`).
_WEEK_MS = 7 * 24 * 3600 * 1000
_GIB = 1024**3
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """What a topic keeps (Java `UnifiedLog.deleteOldSegments`).

    Kafka deletes whole segments, oldest first: by time when the newest record of a segment is older than
    `retention.ms`, by size while the segments behind it hold `retention.bytes` without it. So a record goes at the
    earliest when its own age, or what stands behind it, reaches the bound, and at the latest a segment later.

    Attributes:
        seconds: `retention.ms`, None where age deletes nothing.
        bytes: `retention.bytes`, which is per partition; None where size deletes nothing.
        segment_seconds: `segment.ms`: records of one segment differ in age by no more.
        segment_bytes: `segment.bytes`.
        remote: the log is in tiered storage (KIP-405). `retention.ms` and `retention.bytes` count for the whole log,
            `local.retention.*` only for what brokers keep beside it; sizes that brokers tell are of that part alone.
        append_time: record times are those of the broker's clock.
        tombstone_seconds: how long a record that deletes a key stays at least; None where the topic is not compacted.
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
        """Whether anything is ever deleted because of its age or of the log's size."""
        return self.seconds is not None or self.bytes is not None

    @classmethod
    def of(cls, configs: TopicConfigs) -> Retention:
        """Read a topic's configs as brokers do.

        Without `delete` in `cleanup.policy` (compacted topics; no policy at all, KIP-1161) retention has no say.
        """
        policy = configs.value("cleanup.policy")
        deletes = policy is None or "delete" in [part.strip() for part in policy.split(",")]
        milliseconds = _bound(configs, "retention.ms") if deletes else None
        return cls(
            seconds=None if milliseconds is None else milliseconds / 1000,
            bytes=_bound(configs, "retention.bytes") if deletes else None,
            segment_seconds=(_number(configs, "segment.ms") or _WEEK_MS) / 1000,
            segment_bytes=_number(configs, "segment.bytes") or _GIB,
            remote=configs.value("remote.storage.enable") == "true",
            append_time=configs.value("message.timestamp.type") == "LogAppendTime",
            tombstone_seconds=None if (kept := tombstones_kept_ms(configs)) is None else kept / 1000,
        )


def is_compacted(configs: TopicConfigs) -> bool:
    """Return True if `compact` is one of the topic's cleanup policies."""
    return "compact" in [part.strip() for part in (configs.value("cleanup.policy") or "").split(",")]


def tombstones_kept_ms(configs: TopicConfigs) -> int | None:
    """Shortest time from the append of a record without a value to its removal, in milliseconds.

    When the cleaner cleans a batch for the first time it gives it a delete horizon, `delete.retention.ms` from then
    (KIP-534, Java `Cleaner`, `MemoryRecords.filterTo`), and that may be right after it was written.
    `min.compaction.lag.ms` delays that by the record's timestamp, so it only counts where the broker sets timestamps.
    `max.compaction.lag.ms`, segment sizes and the dirty ratio decide how soon the cleaner comes, and promise nothing.

    Returns:
        None for a topic that is not compacted.
    """
    if not is_compacted(configs):
        return None
    kept = _number(configs, "delete.retention.ms")
    lag = _number(configs, "min.compaction.lag.ms") or 0
    append_time = configs.value("message.timestamp.type") == "LogAppendTime"
    return (_DAY_MS if kept is None else kept) + (lag if append_time else 0)


def _bound(configs: TopicConfigs, name: str) -> int | None:
    number = _number(configs, name)
    return None if number is None or number < 0 else number


def _number(configs: TopicConfigs, name: str) -> int | None:
    value = configs.value(name)
    return None if value is None else int(value)
