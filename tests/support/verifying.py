"""Verifying a test's flow, and targets that somebody has tampered with."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mirror_lib.cluster.rows.layout import SOURCE_COLUMN
from mirror_lib.topology.names import TopicPartition
from mirror_lib.verify.local import run_locally
from mirror_lib.verify.model import PartitionVerdict, VerifyJob
from mirror_lib.verify.report import VerifyReport
from mirror_lib.verify.transformed.comparing import compare_bin
from mirror_lib.verify.transformed.model import RefusedRecord, RowVerifyJob
from mirror_lib.verify.transformed.reading import read_bin
from mirror_lib.verify.transformed.split import judged_together, split_job
from mirror_lib.verify.verification import VerifyOptions, verify_flow
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce
from tests.support.transforming import RowFunction, unchanged


def verify(flow: Flow, **options: Any) -> VerifyReport:
    """One verification in this process."""
    return verify_flow(
        flow.config, ledger=flow.ledger, make_runner=lambda _: run_locally(1), options=VerifyOptions(**options)
    )


def tamper(pair: KafkaPair, topic: str, change: Callable[[list[Record]], Sequence[Record]]) -> None:
    """Put a changed copy of a remote topic of one partition in its place, with the target's own producer."""
    copy = change(consume(pair.target, topic))
    delete_topic(pair.target, topic)
    create_topic(pair.target, topic)
    produce(pair.target, topic, copy)


@dataclass(frozen=True)
class CompareHere:
    """A runner of verifications, all of whose transformed topics go through one function.

    Attributes:
        rows_at_once: how many rows Spark hands over at a time.
    """

    function: RowFunction = unchanged
    rows_at_once: int = 100
    refused: Mapping[TopicPartition, tuple[RefusedRecord, ...]] = field(default_factory=dict)
    #: A topic that a transform sets.
    elsewhere: str | None = None

    def __call__(self, whole: VerifyJob) -> list[PartitionVerdict]:
        raw, transformed = split_job(whole)
        found = run_locally(1)(raw) if raw.bins else []
        for each in transformed:
            job = RowVerifyJob(each.job, self.refused, nonce=uuid.uuid4().hex)
            with ThreadPoolExecutor(max_workers=len(each.job.bins)) as pool:
                bins = list(pool.map(lambda number, job=job: self._bin(job, number), range(len(each.job.bins))))
            found += judged_together([verdict for verdicts in bins for verdict in verdicts])
        return found

    def _bin(self, job: RowVerifyJob, number: int) -> list[PartitionVerdict]:
        return compare_bin(job, number, 0, self._rows(job, number))

    def _rows(self, job: RowVerifyJob, number: int) -> Iterator[pa.RecordBatch]:
        for batch in read_bin(job, number, 0):
            made = self.function(batch)
            for first in range(0, made.num_rows, self.rows_at_once):
                yield _written(made.slice(first, self.rows_at_once), self.elsewhere)


def verify_transformed(flow: Flow, function: RowFunction = unchanged, **options: Any) -> VerifyReport:
    """One verification in this process, with the function in the place of the flow's transforms."""
    runner = CompareHere(function)
    return verify_flow(flow.config, ledger=flow.ledger, make_runner=lambda _: runner, options=VerifyOptions(**options))


def _written(rows: pa.RecordBatch, topic: str | None) -> pa.RecordBatch:
    """Rows as they come to the comparing half."""
    names = ("key", "value", "headers", "timestamp")
    routes = pa.array([topic] * rows.num_rows, pa.string()), pa.nulls(rows.num_rows, pa.int32())
    columns = [*(rows.column(name) for name in names), *routes, rows.column(SOURCE_COLUMN)]
    return pa.RecordBatch.from_arrays(columns, [*names, "topic", "partition", SOURCE_COLUMN])
