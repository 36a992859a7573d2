"""The topic of one test on the shared clusters: what nearly every test of a flow begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, produce


@dataclass(frozen=True)
class MirroredTopic:
    """A topic of the source, its remote topic by the default policy, and flows from A to B that copy it.

    Attributes:
        folder: of the flow's file and ledger.
    """

    pair: KafkaPair
    name: str
    folder: Path

    @property
    def source(self) -> KafkaCluster:
        """Cluster A."""
        return self.pair.source

    @property
    def target(self) -> KafkaCluster:
        """Cluster B."""
        return self.pair.target

    @property
    def remote(self) -> str:
        """Its name on the target."""
        return f"A.{self.name}"

    def between(self, **others: KafkaCluster) -> MirroredTopic:
        """The same topic with another cluster as its `source` or its `target`."""
        return replace(self, pair=replace(self.pair, **others))

    def create(
        self, written: Iterable[Record] = (), *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> list[Record]:
        """Create it on the source with these records; returns them with their offsets."""
        create_topic(self.source, self.name, partitions=partitions, configs=configs)
        return self.produce(found) if (found := list(written)) else []

    def produce(self, written: Iterable[Record], **settings: Any) -> list[Record]:
        """Write to it on the source; settings as in `tests.support.kafka.produce`."""
        return produce(self.source, self.name, written, **settings)

    def damage(self, text: bytes) -> None:
        """Change the first byte of this text in the source broker's log file to a T, as a failing disk would."""
        # By name: a search through all folders trips over those that the broker removes meanwhile.
        segments = self.source.directory.glob(f"*/data/{self.name}-0/*.log")
        (segment,) = [path for path in segments if text in path.read_bytes()]
        with segment.open("r+b") as file:
            file.seek(segment.read_bytes().index(text))
            file.write(b"T")

    def create_remote(self, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create its remote topic before a flow does."""
        create_topic(self.target, self.remote, partitions=partitions, configs=configs)

    def produce_remote(self, written: Iterable[Record], **settings: Any) -> list[Record]:
        """Write to its remote topic, as another producer."""
        return produce(self.target, self.remote, written, **settings)

    def copied(self, **options: Any) -> list[Record]:
        """What is on the target; options as in `tests.support.kafka.consume`."""
        return consume(self.target, self.remote, **options)

    def flow(self, settings: Mapping[str, str] | None = None, *, topics: str | None = None) -> Flow:
        """A flow of this topic, or of others, by these settings."""
        return pair_flow(self.folder, self.pair, topics=topics or self.name, settings=settings)
