"""Everything that is running during a campaign, and operations that are independent of the fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.faults.clusters.side import Side
from tools.faults.drivers.drivers import Drivers
from tools.faults.flow_config import INPUT_PREFIX, TARGET_PREFIX
from tools.faults.postgres import PostgresServer
from tools.faults.records.input import Input
from tools.faults.records.reading import Place, Reader
from tools.faults.records.sequences import ArrivalCheck, Findings

#: Called with one sentence about the present step.
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Configs:
    """The flow's properties files: the same flow with different ledgers."""

    main: Path
    #: Its ledger, in SQLite.
    main_ledger: Path
    #: With its own ledger, as if the flow was run twice by mistake: no lock keeps the two apart.
    stranger: Path
    #: With its ledger in PostgreSQL; None if no fault needs it.
    postgres: Path | None = None


@dataclass(slots=True)
class World:
    """Both clusters, the input, the drivers and the reader of the target."""

    source: Side
    target: Side
    drivers: Drivers
    input: Input
    configs: Configs
    postgres: PostgresServer | None
    reader: Reader
    log: Log
    #: After this time the target's brokers have forgotten the producers of old records.
    forget_seconds: float = 0.0
    arrivals: ArrivalCheck = field(default_factory=ArrivalCheck)

    def source_topics(self) -> dict[str, int]:
        """Return the input's topics with their numbers of partitions."""
        return self.source.topics.partitions(INPUT_PREFIX)

    def target_topics(self) -> dict[str, int]:
        """Return their copies on the target, by the target's names."""
        return self.target.topics.partitions(TARGET_PREFIX + INPUT_PREFIX)

    def check(self) -> Findings:
        """Read new records on the target; return all findings so far."""
        ends = by_source_name(self.target.topics.ends(self.target_topics()))
        self.reader.read_new(ends, self.arrivals.add)
        return self.arrivals.findings()


def by_source_name(ends: Mapping[Place, int]) -> dict[Place, int]:
    """Return partitions of the target by the names of the source."""
    return {(topic.removeprefix(TARGET_PREFIX), partition): end for (topic, partition), end in ends.items()}


def pause(seconds: float) -> None:
    """Wait while the processes continue, as a part of the fault."""
    time.sleep(seconds)
