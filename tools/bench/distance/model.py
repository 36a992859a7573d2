"""The copies of a comparison over a distance, and the theoretical maximum of the line. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from mirror_lib.copy.transfer.broker_connections import reach
from tools.bench.copiers.settings import Copier
from tools.bench.workloads.workload import Workload
from tools.testbed.wan_direction import LineQuality


class Case(StrEnum):
    """Which cluster is behind the line, and the quality of the line."""

    LOCAL = "local"
    SOURCE_FAR = "source far"
    TARGET_FAR = "target far"
    SOURCE_LOSSY = "source far with loss"
    TARGET_LOSSY = "target far with loss"

    @property
    def source_far(self) -> bool:
        """True if the source is behind the line."""
        return self in (Case.SOURCE_FAR, Case.SOURCE_LOSSY)

    @property
    def target_far(self) -> bool:
        """True if the target is behind the line."""
        return self in (Case.TARGET_FAR, Case.TARGET_LOSSY)

    @property
    def lossy(self) -> bool:
        """True if the line loses segments."""
        return self in (Case.SOURCE_LOSSY, Case.TARGET_LOSSY)

    def line(self, quality: LineQuality) -> LineQuality | None:
        """Return the line of this case; None if there is none."""
        if self is Case.LOCAL:
            return None
        return quality if self.lossy else replace(quality, loss=0.0)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Maximum bytes per second of a line, in one direction; None: no limit."""

    #: Connections that carry records.
    connections: int
    #: By the window in flight of each connection: window / round trip (RFC 7323 section 1.1).
    window: float | None
    #: With Cubic or Reno, by Mathis et al. (1997): 1.22 segments per round trip, over the root of the loss.
    loss: float | None
    #: Of the line.
    width: float | None

    @property
    def most(self) -> float | None:
        """The smallest of them."""
        return min((each for each in (self.window, self.loss, self.width) if each is not None), default=None)


def allowed(quality: LineQuality, connections: int) -> Allowed:
    """Return the limits of a line over this many connections."""

    def together(bytes_per_second: float) -> float | None:
        return bytes_per_second * connections or None

    return Allowed(
        connections,
        window=together(replace(quality, loss=0.0).bytes_per_second_of_a_connection),
        loss=together(replace(quality, window_bytes=0).bytes_per_second_of_a_connection),
        width=quality.bytes_per_second or None,
    )


def data_connections(
    copier: Copier, round_trip_seconds: float, *, partitions: int, tasks: int, connections_per_broker: int = 0
) -> int:
    """Return how many connections carry records to or from the one broker of a cluster, of all tasks together.

    Args:
        copier: MM2 has a consumer and a producer in each task, with a connection each. A task of this project has
            several to a broker, but a partition uses only one of them at a time.
        round_trip_seconds: to the broker.
        partitions: of the topic, distributed evenly.
        tasks: of the copy.
        connections_per_broker: the flow's setting (`mirror.connections.per.broker`); 0: by the round-trip time.
    """
    each = reach(round_trip_seconds, connections_per_broker).connections if copier is Copier.MIRROR else 1
    return sum(min(each, partitions // tasks + (number < partitions % tasks)) for number in range(tasks))


def lossy_workload(workload: Workload, most: float | None, seconds: float, partitions: int) -> Workload:
    """Return as many of a workload's records as a lossy line transmits in some seconds, at least two batches a
    partition.

    Args:
        workload: all of it is the upper limit.
        most: bytes per second of the line; None: no limit.
        seconds: about how long the copy may take if it is as fast as the line.
        partitions: of the topic.
    """
    if most is None:
        return workload
    fewest = 2 * partitions * workload.records_per_batch
    records = min(max(int(most * seconds / workload.value_bytes), fewest), workload.records)
    return workload if records == workload.records else replace(workload.scaled(records), name=f"{workload.name}-lossy")
