"""What `ClusterAdmin` is asked for and what it answers with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from mirror_lib.errors import MirrorError

_Answer = TypeVar("_Answer")


class PerTopic(Mapping[str, _Answer], Generic[_Answer]):
    """Answers by topic name. Topics that gave none are not in the mapping but in `errors`, each with its reason."""

    __slots__ = ("_found", "errors")

    def __init__(self, found: Mapping[str, _Answer], errors: Mapping[str, MirrorError]) -> None:
        self._found = found
        #: `TopicMissingError` for a topic that does not exist, `AuthorizationError` for one we may not see, ...
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
    """Which offset of a partition is meant."""

    #: The first offset that is still there.
    EARLIEST = "earliest"
    #: The high watermark: one past the last replicated record.
    LATEST = "latest"
    #: One past the last record whose transaction, if any, is decided (KIP-98); at most `LATEST`.
    LAST_STABLE = "last-stable"


@dataclass(frozen=True, slots=True)
class OffsetFact:
    """An offset of a partition; when `error` is set there is none, and `offset` is -1."""

    offset: int
    #: The leader epoch of that offset, None when the broker does not say.
    leader_epoch: int | None = None
    error: MirrorError | None = None


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker as clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """Where a partition lives; `leader` is None while there is none. Replicas and ISR are broker ids."""

    partition: int
    leader: int | None
    leader_host: str | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions in ascending order."""

    name: str
    #: Base64 as Kafka writes it; None before Kafka 2.8, which gives topics no id (KIP-516).
    topic_id: str | None
    partitions: tuple[PartitionDescription, ...]
    is_internal: bool = False

    @property
    def replication_factor(self) -> int:
        """Replicas of the topic's first partition, as MM2 and Kafka's own tools say it."""
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
        """The value in effect, None when the broker knows no such config or hides it."""
        entry = self.entries.get(name)
        return None if entry is None else entry.value

    def set_on_topic(self) -> dict[str, str]:
        """What somebody set on the topic itself; the rest follows the cluster."""
        return {
            entry.name: entry.value
            for entry in self.entries.values()
            if entry.origin is ConfigOrigin.TOPIC and entry.value is not None
        }


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create; -1 leaves a count to the broker's default (KIP-464)."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
