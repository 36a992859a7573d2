"""Parameters and results of `ClusterAdmin`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from mirror_lib.errors import MirrorError

_Answer = TypeVar("_Answer")


class PerTopic(Mapping[str, _Answer], Generic[_Answer]):
    """Results by topic name. Topics without a result are in `errors` instead, each with its error."""

    __slots__ = ("_found", "errors")

    def __init__(self, found: Mapping[str, _Answer], errors: Mapping[str, MirrorError]) -> None:
        self._found = found
        #: `TopicMissingError` for a topic that does not exist, `AuthorizationError` without permission, ...
        self.errors = errors

    def __getitem__(self, topic: str) -> _Answer:
        return self._found[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"PerTopic({self._found!r}, errors={self.errors!r})"


class OffsetSpec(Enum):
    """Selects an offset of a partition."""

    #: The log start offset.
    EARLIEST = "earliest"
    #: The high watermark: one past the last replicated record.
    LATEST = "latest"
    #: The last stable offset: one past the last record whose transaction, if any, is decided (KIP-98); at most
    #: `LATEST`.
    LAST_STABLE = "last-stable"


@dataclass(frozen=True, slots=True)
class OffsetFact:
    """An offset of a partition; if `error` is set, `offset` is -1."""

    offset: int
    #: The leader epoch of that offset; None if the broker does not report it.
    leader_epoch: int | None = None
    error: MirrorError | None = None


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker with the address that clients use."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """Leader, replicas and ISR of a partition, as broker ids; `leader` is None if there is none."""

    partition: int
    leader: int | None
    leader_host: str | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions in ascending order."""

    name: str
    #: Base64 as Kafka writes it; None before Kafka 2.8, where topics have no id (KIP-516).
    topic_id: str | None
    partitions: tuple[PartitionDescription, ...]
    is_internal: bool = False

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the topic's first partition, as in MM2 and Kafka's own tools."""
        return len(self.partitions[0].replicas) if self.partitions else 0


class ConfigOrigin(StrEnum):
    """Where a config value is set (Java `ConfigEntry.ConfigSource`)."""

    TOPIC = "dynamic topic"
    BROKER = "dynamic broker"
    CLUSTER = "dynamic cluster-wide default"
    BROKER_FILE = "static broker"
    DEFAULT = "default"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config of a topic; the broker hides the value of sensitive ones."""

    name: str
    value: str | None
    origin: ConfigOrigin
    read_only: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    """Every config in effect for a topic."""

    topic: str
    entries: Mapping[str, ConfigEntry]

    def value(self, name: str) -> str | None:
        """The value in effect; None if the broker does not know the config or hides it."""
        entry = self.entries.get(name)
        return None if entry is None else entry.value

    def number(self, name: str) -> int | None:
        """The value in effect as a number; None as for `value`."""
        value = self.value(name)
        return None if value is None else int(value)

    @property
    def has_append_times(self) -> bool:
        """True if the broker sets the timestamps of records."""
        return self.value("message.timestamp.type") == "LogAppendTime"

    def set_on_topic(self) -> dict[str, str]:
        """The configs that are set on the topic itself; the others follow the cluster."""
        return {
            entry.name: entry.value
            for entry in self.entries.values()
            if entry.origin is ConfigOrigin.TOPIC and entry.value is not None
        }


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create; -1 uses the broker's default of a count (KIP-464)."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
