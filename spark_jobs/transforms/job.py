"""Copies through transforms: read, transform, write, in one Spark job for all partitions with the same transforms.

A record for which a transform fails ends the whole Spark job. The failing record is then searched for without writing,
and the job is repeated without it, or up to it, by the flow's policy; rows that were already written are found again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.copy.transfer.result_rows import RESULT_DDL, from_arrow
from mirror_lib.copy.transfer.task import from_earlier_attempt
from mirror_lib.errors import MirrorError, Where
from mirror_lib.features.transforms.copy.failing_records import (
    Failure,
    Found,
    OffsetRange,
    failing_record,
    named_record,
)
from mirror_lib.features.transforms.copy.model import FailedRecord, RowJob, first_stop, reading_start
from mirror_lib.features.transforms.model import members_of
from mirror_lib.features.transforms.record_mark import UntransformableRecordError, read_mark
from mirror_lib.features.transforms.rows.layout import number_of
from mirror_lib.features.transforms.rows.reader_result import new_secret
from mirror_lib.planning.by_transform_chain import ChainJob
from mirror_lib.planning.model import OpenPartition, PartitionResult
from spark_jobs.bins import map_bins
from spark_jobs.copy_results import COPY_RESULTS
from spark_jobs.failures import spark_errors, spark_failure
from spark_jobs.sealing import seal
from spark_jobs.spark_versions import to_arrow
from spark_jobs.transforms.chain_rows import ChainRows
from spark_jobs.transforms.record_failures import blames_no_record, failed_task, words_of
from spark_jobs.transforms.row_tasks import DRAINED_DDL, drain_rows, finish_bins, read_rows, write_rows
from spark_jobs.transforms.smt_row_tasks import copy_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
#: Maximum number of tries of a job, each without one more failing record.
_MOST_TRIES = 20


def transform_copy(spark: SparkSession, each: ChainJob) -> list[PartitionResult]:
    """Copy partitions through their transforms.

    Raises:
        MirrorError: Spark gave up, or refuses a transform.
    """
    return _TransformedCopy(spark, each).run()


class _TransformedCopy:
    def __init__(self, spark: SparkSession, each: ChainJob) -> None:
        self._spark = spark
        self._chain = members_of(each.chain)
        self._flow = str(each.job.flow)
        exact = self._chain.is_deterministic
        self._job = RowJob(copy=each.job, exact=exact, routes=each.chain.may_route, secret=new_secret())
        self._results: list[PartitionResult] = []
        targets = {opened.plan.source.topic: opened.plan.target.topic for bin_ in each.job.bins for opened in bin_}
        self._rows = ChainRows(spark, self._chain, targets, read_rows)

    def run(self) -> list[PartitionResult]:
        for left in reversed(range(_MOST_TRIES)):
            try:
                self._keep(self._write())
                self._finish()
                return self._results
            except spark_errors() as error:
                found = self._find(error)
                if found is None or not left:
                    raise spark_failure(error, "the copy", self._flow) from error
                self._job = self._without(found, last=left == 1)
        raise AssertionError("the last try either ends or raises")

    def _keep(self, results: list[PartitionResult]) -> None:
        """Store results; the job is then limited to the other partitions."""
        self._results += results
        done = {result.source for result in results}
        left = tuple(bin_ for bin_ in self._job.copy.bins if bin_[0].plan.source not in done)
        self._job = replace(self._job, copy=replace(self._job.copy, bins=left), secret=new_secret())

    def _write(self) -> list[PartitionResult]:
        """The results of all bins for which Spark has started a writing half."""
        job = self._job
        sealed = seal(job, COPY_RESULTS)
        if not self._chain.transforms:
            # Without Spark transforms, rows need not pass Spark's JVM: Python does all of the work.
            task = partial(copy_rows, *sealed, self._rows.smts)
            return from_arrow([to_arrow(map_bins(self._spark, len(job.copy.bins), task, RESULT_DDL))])
        made = self._rows.transform(sealed, len(job.copy.bins))
        return from_arrow([to_arrow(made.mapInArrow(partial(write_rows, *sealed), RESULT_DDL))])

    def _finish(self) -> None:
        """End bins without a writing half: Spark starts no task if it knows beforehand that no rows remain.

        It must be certain that no rows remain, and only the reading half knows how far it came: so this reads once
        more, to the end. With non-deterministic transforms there may be rows then.
        """
        while self._job.copy.bins and self._has_rows():
            if self._job.exact:
                raise MirrorError(
                    "a transform returned rows for records that it had dropped before.",
                    where=Where(flow=self._flow),
                    action="The transform must give the same result for the same record: check it for random values "
                    "and clocks, and do not set deterministic=true for it.",
                )
            self._keep(self._write())
        count = len(self._job.copy.bins)
        if count:
            task = partial(finish_bins, *seal(self._job, COPY_RESULTS))
            self._keep(from_arrow([to_arrow(map_bins(self._spark, count, task, RESULT_DDL))]))

    def _has_rows(self) -> bool:
        """True if the transforms return any rows for the bins."""
        job = replace(self._job, whole=True)
        sealed = seal(job, COPY_RESULTS)
        made = self._rows.transform(sealed, len(job.copy.bins))
        counted = to_arrow(made.mapInArrow(partial(drain_rows, *sealed), DRAINED_DDL))
        return any(counted.column(0).to_pylist())

    # ------------------------------------------------------------ records that fail

    def _find(self, error: Exception) -> Found | None:
        """The record for which a Spark job has failed; None if the cause was another one."""
        if blames_no_record(error):
            return None
        opened = [opened for bin_ in self._job.copy.bins for opened in bin_]
        marked = read_mark(str(error))
        if marked is not None:
            at = number_of(marked.place)
            within = self._range(opened[at]) if 0 <= at < len(opened) else None
            named = named_record(within, marked.offset, self._probe)
            if named is not None:
                return named
        number = failed_task(error, len(self._job.copy.bins))
        ranges = [self._range(each) for each in (opened if number is None else self._job.copy.bins[number])]
        _log.warning("flow %s: a record cannot be transformed; searching for it: %s", self._flow, words_of(error))
        return failing_record(ranges, self._probe)

    def _range(self, opened: OpenPartition) -> OffsetRange:
        """The range of a partition that the job reads."""
        source, start, end = opened.plan.source, reading_start(opened), opened.plan.end
        skip = self._job.copy.settings.poison_policy is not PoisonPolicy.FAIL
        failed = self._job.failed.get(source, ())
        return OffsetRange(source, start, first_stop(failed, skip=skip, start=start, end=end))

    def _probe(self, groups: Sequence[Sequence[OffsetRange]]) -> Failure | None:
        """Transform ranges of the source without writing; each group is a task."""
        opened = {each.plan.source: each for bin_ in self._job.copy.bins for each in bin_}
        bins = tuple(tuple(_only(opened[each.source], each) for each in group) for group in groups)
        settings = replace(self._job.copy.settings, poison_policy=PoisonPolicy.SKIP)
        job = replace(self._job, copy=replace(self._job.copy, bins=bins, settings=settings), secret=new_secret())
        sealed = seal(job, COPY_RESULTS)
        try:
            to_arrow(self._rows.transform(sealed, len(bins)).mapInArrow(partial(drain_rows, *sealed), DRAINED_DDL))
        except spark_errors() as error:
            return Failure(error, failed_task(error, len(groups)))
        return None

    def _without(self, found: Found, *, last: bool) -> RowJob:
        """The job without this record, taking over from the attempt that just failed.

        Args:
            last: whether the partition must end before the record regardless of the policy, so that the run ends.
        """
        where = Where(flow=self._flow, topic=found.source.topic, partition=found.source.partition, offset=found.offset)
        many = f" It is failure number {_MOST_TRIES - 1} of this run; the run stops searching." if last else ""
        failure = UntransformableRecordError(
            f"the record cannot be transformed ({', '.join(self._chain.names)}): {words_of(found.error)}.{many}",
            where=where,
            action="Correct the transform, or skip such records: mirror.poison.policy=quarantine keeps a copy of them, "
            "skip does not. `mirror transform preview` shows the result for a record.",
        )
        known = dict(self._job.failed)
        record = FailedRecord(found.offset, failure, ends_partition=last)
        known[found.source] = tuple(sorted((*known.get(found.source, ()), record), key=lambda each: each.offset))
        bins = tuple(tuple(from_earlier_attempt(opened) for opened in bin_) for bin_ in self._job.copy.bins)
        return replace(self._job, copy=replace(self._job.copy, bins=bins), failed=known, secret=new_secret())


def _only(opened: OpenPartition, wanted: OffsetRange) -> OpenPartition:
    return replace(opened, plan=replace(opened.plan, start=wanted.first, end=wanted.end), takeover=None)
