"""Verifying a test's flow, and targets that somebody has tampered with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from mirror_lib.features.transforms.rows.reader_result import new_secret
from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict
from mirror_lib.features.verify.model import NOTHING_ROUTED, VerifyJob
from mirror_lib.features.verify.planning.by_transform_chain import for_second_read, split_job
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.routed.findings import Place, RoutedFindings, TargetDigests
from mirror_lib.features.verify.routed.judge import judge_routed
from mirror_lib.features.verify.routed.routed_rows import FoundRow
from mirror_lib.features.verify.routed.target_digests import DigestsJob, read_target_digests
from mirror_lib.features.verify.run import VerifyOptions, VerifyRunner, verify_flow
from mirror_lib.features.verify.transformed.compare_rows import compare_bin, find_bin
from mirror_lib.features.verify.transformed.model import RefusedRecord, RowVerifyJob
from mirror_lib.features.verify.transformed.row_source import read_bin
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce
from tests.support.transforming import Route, RowFunction, routed, unchanged

Found = TypeVar("Found")


def verify(
    flow: Flow, *, make_runner: Callable[[Any], VerifyRunner] = lambda _: run_locally(1), **options: Any
) -> VerifyReport:
    """One verification in this process."""
    return verify_flow(flow.config, ledger=flow.ledger, make_runner=make_runner, options=VerifyOptions(**options))


def changed(place: int, **parts: Any) -> Callable[[list[Record]], list[Record]]:
    """A change of a copy: the record at a place has another key, value, timestamp or other headers."""
    return lambda copy: [*copy[:place], replace(copy[place], **parts), *copy[place + 1 :]]


def tamper(pair: KafkaPair, topic: str, change: Callable[[list[Record]], Sequence[Record]]) -> None:
    """Put a changed copy of a remote topic of one partition in its place, with the target's own producer."""
    put_on_target(pair, topic, change(consume(pair.target, topic)))


def put_on_target(pair: KafkaPair, topic: str, copy: Sequence[Record]) -> None:
    """Let these records be all that a remote topic of one partition holds."""
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
    #: Where transforms send records by their values.
    route: Route | None = None

    def __call__(self, whole: VerifyJob) -> list[PartitionVerdict | RoutedVerdict]:
        raw, transformed = split_job(whole)
        found: list[PartitionVerdict | RoutedVerdict] = [*run_locally(1)(replace(raw, routed=NOTHING_ROUTED))]
        jobs = [RowVerifyJob(each.job, self.refused, secret=new_secret()) for each in transformed]
        made = RoutedFindings()
        for job in jobs:
            for verdicts, elsewhere in self._bins(
                job, lambda job, number: compare_bin(job, number, 0, self._rows(job, number))
            ):
                found += verdicts
                made.take(elsewhere)

        def find(wanted: Mapping[Place, frozenset[bytes]]) -> list[FoundRow]:
            again = [replace(job, verify=for_second_read(job.verify, wanted), secret=new_secret()) for job in jobs]
            return [
                row
                for job in again
                for rows in self._bins(job, lambda job, at: find_bin(job, at, 0, self._rows(job, at), wanted))
                for row in rows
            ]

        return [*found, *judge_routed(whole, made, _read_standing, find)]

    def _bins(self, job: RowVerifyJob, work: Callable[[RowVerifyJob, int], Found]) -> list[Found]:
        if not job.verify.bins:
            return []
        with ThreadPoolExecutor(max_workers=len(job.verify.bins)) as pool:
            return list(pool.map(lambda number: work(job, number), range(len(job.verify.bins))))

    def _rows(self, job: RowVerifyJob, number: int) -> Iterator[pa.RecordBatch]:
        for batch in read_bin(job, number, 0):
            made = self.function(batch)
            for first in range(0, made.num_rows, self.rows_at_once):
                yield routed(made.slice(first, self.rows_at_once), self.route)


def _read_standing(job: DigestsJob) -> list[TargetDigests]:
    return [found for number in range(len(job.bins)) for found in read_target_digests(job, number)]


def verify_transformed(
    flow: Flow, function: RowFunction = unchanged, *, route: Route | None = None, **options: Any
) -> VerifyReport:
    """One verification in this process, with the function in the place of the flow's transforms."""
    return verify(flow, make_runner=lambda _: CompareHere(function, route=route), **options)
