"""How fast a run may copy: the limits of its flow, its options and its clusters, round by round.

A flow's own limit applies to its rounds directly. A cluster's limit is shared by all runs that copy from or to it,
through the ledger (`ledger.tables.rate_claims`): a run claims its share when a round begins, and its tasks keep to it
until the round's end. So that other runs need not wait long for theirs, a round under such a limit copies about a
minute's worth; if there is more, the run continues with another round, regardless of its time budget, up to the end
that the first one would have reached.

A large plan without such limits is cut into rounds too, of about ten minutes each: between two rounds a run can end
(`mirror.run.longest.seconds`), and leave the rest to the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mirror_lib.config.model import FlowConfig
from mirror_lib.ledger.rows import RateSide
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.rate_claims import RateAsk
from mirror_lib.planning.model import ASSUMED_BYTES_PER_OFFSET, PartitionPlan, PartitionResult, RunPlan
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: Seconds of a cluster's share that one round copies, and so the longest time that a share is held.
ROUND_SECONDS = 60
#: A round that could finish within these seconds leaves the rest of the limit to others.
_SHORT_SECONDS = 5
#: Size of the first round of a large plan, when the speed is not known; then the time of a round.
_FIRST_SLICE_BYTES = 4 * 1024**3
_SLICE_SECONDS = 600.0
#: Minimum claim: the remaining bytes are an estimate.
_LEAST_WANTED = 1024 * 1024


def cluster_limits(flow: FlowConfig) -> tuple[RateAsk, ...]:
    """The limits that the flow's clusters set for all flows together."""
    limits = (
        RateAsk(RateSide.READ, flow.clients.data_consumer.cluster, flow.source_rate_limit_read_bytes),
        RateAsk(RateSide.WRITE, flow.clients.data_producer.cluster, flow.target_rate_limit_write_bytes),
    )
    return tuple(ask for ask in limits if ask.limit)


class RunRate:
    """The limits of one run, and what it may copy in the current round."""

    def __init__(
        self,
        flow: FlowConfig,
        ledger: Ledger,
        *,
        run_id: str,
        bytes_per_second: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        sliced: bool = True,
    ) -> None:
        """Args:
        flow: as configured.
        ledger: runs share the limits of clusters through it.
        run_id: a run that holds its flow's lock.
        bytes_per_second: replaces the flow's own limit; None keeps that.
        clock: monotonic seconds.
        sleep: waits for seconds.
        sliced: cut large plans into several rounds.
        """
        self._own = bytes_per_second or flow.copy_settings.rate_limit_bytes or None
        self._asks = cluster_limits(flow)
        self._flow = str(flow.flow)
        self._run_id = run_id
        self._ledger = ledger
        self._clock = clock
        self._sleep = sleep
        #: Maximum bytes per second that all tasks of the round together read; None: no limit.
        self.bytes_per_second = self._own
        #: Whether the round leaves a part of its plan for another round.
        self.may_continue = False
        self._ends: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] = {}
        self._began = 0.0
        self._free_at = 0.0
        #: Maximum bytes of a round; None: no limit.
        self._slice_bytes = _FIRST_SLICE_BYTES if sliced else None
        #: For partitions of unknown size: an assumption, then the mean of the round before.
        self._bytes_per_offset: float = ASSUMED_BYTES_PER_OFFSET

    @property
    def left(self) -> int:
        """Offsets of the whole plan that are not copied; 0 if none are left."""
        return sum(end - self._done[source] for source, end in self._ends.items()) if self.may_continue else 0

    def begin(self, plan: RunPlan) -> RunPlan:
        """Claim a share of the limits for a plan; return the part of it that this round copies.

        Wait if the round before has read more than its time allowed.
        """
        if (pause := self._free_at - self._clock()) > 0:
            self._sleep(pause)
        self._began = self._clock()
        if self.may_continue:
            plan = _up_to(plan, self._ends)
        self.may_continue = False
        most = self._slice_bytes
        if not self._asks and (most is None or self._size(plan.partitions) <= most):
            self._ends = {}
            return plan
        self._ends = {each.source: each.end for each in plan.partitions}
        if not self._asks:
            assert most is not None
            return self._first_bytes(plan, most)
        claims = self._ledger.claim_rate(
            flow=self._flow, run_id=self._run_id, wanted=self._wanted_rate(plan), asks=self._asks
        )
        self.bytes_per_second = claims[0].bytes_per_second
        _log.info("flow %s may copy %d bytes per second in this round", self._flow, self.bytes_per_second)
        share = self.bytes_per_second * ROUND_SECONDS
        return self._first_bytes(plan, share if most is None else min(share, most))

    def end(self, results: Sequence[PartitionResult]) -> None:
        """Release the share, and record how much of it the round has used."""
        if self.bytes_per_second:
            # Tasks may read a burst at once; over several rounds that must not add up.
            self._free_at = self._began + sum(result.bytes for result in results) / self.bytes_per_second
        copied, seconds = sum(result.bytes for result in results), self._clock() - self._began
        if self._slice_bytes is not None and copied and seconds > 0:
            self._slice_bytes = max(int(copied / seconds * _SLICE_SECONDS), 1)
        offsets = sum(result.source_next - result.start for result in results)
        if copied and offsets:
            self._bytes_per_offset = copied / offsets
        if self._ends:
            # Partitions that failed or were not claimed are skipped until the next run.
            done = {each.source: each.source_next for each in results if each.error is None}
            self._ends = {source: end for source, end in self._ends.items() if done.get(source, end) < end}
            self._done = done
            self.may_continue = bool(self._ends)
        if self._asks:
            self._ledger.release_rate(flow=self._flow, run_id=self._run_id)

    def _size(self, partitions: Iterable[PartitionPlan]) -> float:
        return sum(each.estimated_bytes or (each.end - each.start) * self._bytes_per_offset for each in partitions)

    def _first_bytes(self, plan: RunPlan, most: int) -> RunPlan:
        """The first `most` bytes of a plan, spread evenly over its partitions."""
        part = most / max(self._size(plan.partitions), 1.0)
        if part >= 1:
            return plan

        def shorten(each: PartitionPlan) -> PartitionPlan | None:
            offsets = each.end - each.start
            return _shorten_to(each, each.start + (max(int(offsets * part), 1) if offsets else 0))

        return _map_partitions(plan, shorten)

    def _wanted_rate(self, plan: RunPlan) -> int | None:
        known = all(each.estimated_bytes for each in plan.partitions)
        need = max(plan.estimated_bytes // _SHORT_SECONDS, _LEAST_WANTED) if known else None
        return min((limit for limit in (self._own, need) if limit is not None), default=None)


def _up_to(plan: RunPlan, ends: dict[TopicPartition, int]) -> RunPlan:
    """A plan, limited to earlier planned ranges."""
    return _map_partitions(
        plan, lambda each: _shorten_to(each, min(each.end, ends[each.source])) if each.source in ends else None
    )


def _shorten_to(each: PartitionPlan, end: int) -> PartitionPlan | None:
    if end <= each.start:
        # A partition without anything to copy is planned so that an interrupted run is taken over.
        return each if each.end <= each.start else None
    part = (end - each.start) / (each.end - each.start)
    if part >= 1:
        return each
    # Still unknown, if it was.
    estimated_bytes = max(int(each.estimated_bytes * part), 1) if each.estimated_bytes else 0
    return replace(each, end=end, estimated_bytes=estimated_bytes)


def _map_partitions(plan: RunPlan, change: Callable[[PartitionPlan], PartitionPlan | None]) -> RunPlan:
    changed = [[change(each) for each in bin_] for bin_ in plan.bins]
    bins = tuple(tuple(each for each in bin_ if each is not None) for bin_ in changed)
    return replace(plan, bins=tuple(bin_ for bin_ in bins if bin_))
