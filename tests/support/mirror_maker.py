"""A properties file that MirrorMaker 2 and our flow share, and waiting for what MirrorMaker does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mirror_lib.config.model import MirrorConfig
from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, written_flow
from tests.support.kafka import Record, admin, consume
from tests.support.names import unique_name
from tools.testbed.mm2 import MirrorMaker

_WAIT_SECONDS = 120.0
_POLL_SECONDS = 0.3


@dataclass(frozen=True)
class SharedFlow:
    """One flow as both programs are to run it. Aliases are new, so that no internal topics of other tests are met."""

    pair: KafkaPair
    path: Path
    source_alias: str
    target_alias: str
    config: MirrorConfig
    ours: Flow

    @property
    def name(self) -> str:
        """The flow as `source->target`."""
        return f"{self.source_alias}->{self.target_alias}"

    @property
    def properties(self) -> str:
        """The text of the file."""
        return self.path.read_text()

    def topics_on_target(self) -> set[str]:
        """All topics of the target cluster."""
        return set(admin(self.pair.target).list_topics(timeout=10).topics)


def shared_flow(
    folder: Path,
    pair: KafkaPair,
    *,
    topics: str,
    settings: Mapping[str, str] | None = None,
    isolation: str = "read_uncommitted",
    flush_interval_ms: int = 1_000,
) -> SharedFlow:
    """Write the file, with MirrorMaker's intervals so short that a test need not wait for them.

    Args:
        settings: further lines, added as they are.
        isolation: of those who read the source.
        flush_interval_ms: how often MirrorMaker stores positions.
    """
    source, target = unique_name("src"), unique_name("dst")
    lines = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": pair.source.bootstrap_servers,
        f"{target}.bootstrap.servers": pair.target.bootstrap_servers,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": topics,
        **{f"{name}replication.factor": "1" for name in _FACTORS},
        f"{source}.consumer.isolation.level": isolation,
        f"{target}.offset.flush.interval.ms": str(flush_interval_ms),
        "refresh.topics.interval.seconds": "5",
        "refresh.groups.interval.seconds": "2",
        "emit.checkpoints.interval.seconds": "1",
        # Ours, which MirrorMaker does not look at.
        "mirror.retry.max.seconds": "20",
        "mirror.ledger.url": f"sqlite:///{folder}/ledger.sqlite3",
        **(settings or {}),
    }
    config, ours = written_flow(folder, lines, f"{source}->{target}")
    return SharedFlow(pair, ours.path, source, target, config, ours)


_FACTORS = (
    *("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic."),
    *("offset.storage.", "status.storage.", "config.storage."),
)


def wait_until(done: Callable[[], bool], mirror_maker: MirrorMaker, what: str) -> None:
    """Wait for something that MirrorMaker does; its log says what it did instead."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while not done():
        assert mirror_maker.process is not None, f"MirrorMaker ended.\n{mirror_maker.log_tail(40)}"
        assert time.monotonic() < deadline, f"{what} did not happen.\n{mirror_maker.log_tail(40)}"
        time.sleep(_POLL_SECONDS)


def contents(cluster: KafkaCluster, topic: str) -> list[Record]:
    """The records of a topic by partition and order, without the offsets, which may differ between clusters."""
    return [replace(record, offset=None) for record in consume(cluster, topic)]
