"""The account of one round: its expected cost, its cost, and the age of its records.

It is for operators and for later estimates: a ledger that does not respond causes a log line, and ends no round.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.rows import RoundRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.costs import BinSize, Expectation, expect_round
from mirror_lib.planning.model import OpenPartition, PartitionPlan, PartitionResult, RunPlan

_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


class Step(Enum):
    """A part of a round that takes time, named by its ledger column."""

    PLANNING = "planning_seconds"
    OPENING = "opening_seconds"
    COPYING = "copying_seconds"
    COMMITTING = "committing_seconds"


class RoundAccount:
    """Writes the ledger's row of one round."""

    def __init__(self, ledger: Ledger, *, flow: str, run_id: str, number: int) -> None:
        self._ledger = ledger
        self._row = RoundRow(run_id=run_id, flow=flow, number=number, began_at=datetime.now(UTC), planning_seconds=0.0)

    @property
    def row(self) -> RoundRow:
        """The row with all values known so far."""
        return self._row

    @contextmanager
    def measure(self, step: Step) -> Iterator[None]:
        """A context whose time is added to a step."""
        began = time.monotonic()
        try:
            yield
        finally:
            passed = time.monotonic() - began
            self._row = replace(self._row, **{step.value: getattr(self._row, step.value) + passed})

    def record_plan(self, plan: RunPlan) -> None:
        """Record the lag and the expected cost.

        A round with nothing to copy is recorded only if it is the first of the run: flows that check for new records
        every second would fill the table with empty rows.
        """
        if not plan.partitions and self._row.number > 1:
            return
        records, size = _lag(plan)
        self._row = replace(self._row, lag_records=records, lag_bytes=size)
        self.begins(plan)

    def begins(self, plan: RunPlan) -> None:
        """Record what this round copies, if that is not all of the lag."""
        records, size = _lag(plan)
        expected = _courtesy(
            lambda: expectation(plan, self._ledger, self._row.flow), "the cost of the round is unknown"
        )
        self._row = replace(
            self._row,
            tasks=len(plan.bins),
            partitions=len(plan.partitions),
            planned_records=records,
            planned_bytes=size,
            expected_bytes=expected.bytes if expected and plan.partitions else None,
            expected_seconds=expected.seconds if expected and plan.partitions else None,
        )
        self._save()

    def record_commit(
        self, bins: Sequence[Sequence[OpenPartition]], results: Sequence[PartitionResult], now: datetime
    ) -> None:
        """Record the result.

        Args:
            bins: bins of the job.
            now: the moment of the commit.
        """
        copied = {result.source: result.bytes for result in results}
        oldest, newest = record_ages_ms(results, now)
        self._row = replace(
            self._row,
            records=sum(result.records for result in results),
            bytes=sum(copied.values()),
            heaviest_bytes=max((sum(copied.get(each.plan.source, 0) for each in bin_) for bin_ in bins), default=0),
            oldest_age_ms=oldest,
            newest_age_ms=newest,
            committed_at=now,
        )
        self._save()

    def _save(self) -> None:
        _courtesy(lambda: self._ledger.save_round(self._row), "the metrics of the round were not stored")


def expectation(plan: RunPlan, ledger: Ledger | None, flow: str) -> Expectation:
    """Expected cost of a planned round, by the flow's earlier rounds; without a ledger, by the log sizes only.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    rounds = ledger.measured_rounds(flow) if ledger is not None and plan.partitions else ()
    sizes = [
        BinSize(
            bytes=sum(each.estimated_bytes for each in bin_),
            unsized_offsets=sum(each.end - each.start for each in bin_ if not _is_sized(each)),
        )
        for bin_ in plan.bins
    ]
    return expect_round(sizes, rounds)


def record_ages_ms(results: Sequence[PartitionResult], now: datetime) -> tuple[int | None, int | None]:
    """Ages in ms of the oldest and the newest copied record; never below 0.

    Clocks that run ahead would make ages negative, and records may have no timestamp (Kafka's -1).
    """
    moment = int(now.timestamp() * 1000)
    first = [each.first_timestamp for each in results if each.first_timestamp is not None and each.first_timestamp >= 0]
    last = [each.last_timestamp for each in results if each.last_timestamp is not None and each.last_timestamp >= 0]
    return (
        max(moment - min(first), 0) if first else None,
        max(moment - max(last), 0) if last else None,
    )


def _lag(plan: RunPlan) -> tuple[int, int | None]:
    """Lag in offsets and in bytes; None if the size of a partition is unknown."""
    partitions = plan.partitions
    size = sum(each.estimated_bytes for each in partitions)
    return sum(each.end - each.start for each in partitions), size if all(map(_is_sized, partitions)) else None


def _is_sized(partition: PartitionPlan) -> bool:
    return partition.estimated_bytes > 0 or partition.start >= partition.end


def _courtesy(work: Callable[[], _Answer], consequence: str) -> _Answer | None:
    try:
        return work()
    except LedgerError as error:
        _log.warning("%s: %s", consequence, error)
        return None
