"""Progress of a round, observed by the driver: how far the target's ends have moved.

Executors report only at their end, but every target partition has one writer, so its log end offset shows how many
records of this round it has. That takes a few requests, and no back channel from the executors.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Self

from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.errors import MirrorError
from mirror_lib.ledger import rows
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, OpenPartition
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_INTERVAL_SECONDS = 2.0
#: Maximum share of the time for observing: with very many partitions it takes seconds.
_SHARE_OF_TIME = 0.05
_LOG_EVERY = 5


class RoundProgress:
    """A context that updates the ledger rows of a round every two seconds if that costs little."""

    def __init__(self, job: CopyJob, clusters: FlowClusters, ledger: Ledger, *, round_number: int) -> None:
        self._job = job
        self._clusters = clusters
        self._ledger = ledger
        self._round = round_number
        self._partitions = [partition for bin_ in job.bins for partition in bin_]
        #: Records of each partition that the ledger has.
        self._stored: dict[TopicPartition, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="round-progress", daemon=True)

    def __enter__(self) -> Self:
        self._courtesy(
            lambda: self._ledger.save_partition_runs([self._row(each, 0, "planned") for each in self._partitions])
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _follow(self) -> None:
        looks = 0
        pause = _INTERVAL_SECONDS
        while not self._stop.wait(pause):
            looks += 1
            began = time.monotonic()
            self._courtesy(partial(self._look, log=looks % _LOG_EVERY == 0))
            pause = max(_INTERVAL_SECONDS, (time.monotonic() - began) / _SHARE_OF_TIME)

    def _courtesy(self, work: Callable[[], None]) -> None:
        """Do optional work: an error here does not end the round, which has its own account and open positions."""
        try:
            work()
        except MirrorError as error:
            _log.warning("progress of flow %s is unknown: %s", self._job.flow, error)
        except Exception:
            _log.exception("progress of flow %s is unknown", self._job.flow)

    def _look(self, *, log: bool) -> None:
        targets = sorted({partition.plan.target for partition in self._partitions})
        ends = self._clusters.target_admin.list_offsets(targets, OffsetSpec.LATEST)
        written = {}
        for partition in self._partitions:
            fact = ends[partition.plan.target]
            if fact.error is None:
                written[partition.plan.source] = max(fact.offset - partition.target_offset, 0)
        news = {source: records for source, records in written.items() if self._stored.get(source) != records}
        self._ledger.save_partition_runs(
            [
                self._row(partition, news[partition.plan.source], "copying")
                for partition in self._partitions
                if partition.plan.source in news
            ]
        )
        self._stored |= news
        self._ledger.heartbeat(self._job.run_id)
        if log:
            planned = sum(partition.plan.end - partition.plan.start for partition in self._partitions)
            _log.info("flow %s: %d records of at most %d copied", self._job.flow, sum(written.values()), planned)

    def _row(self, partition: OpenPartition, records: int, state: str) -> rows.PartitionRunRow:
        plan = partition.plan
        return rows.PartitionRunRow(
            run_id=self._job.run_id,
            round=self._round,
            topic=plan.source.topic,
            partition=plan.source.partition,
            target_topic=plan.target.topic,
            start_offset=plan.start,
            end_offset=plan.end,
            source_next=plan.start,
            target_first=partition.target_offset,
            target_next=partition.target_offset + records,
            records=records,
            state=state,
        )
