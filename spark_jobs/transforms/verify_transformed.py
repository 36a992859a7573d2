"""Verifications of transformed copies: read, transform again, compare, in one Spark job for each chain.

A record for which a transform fails ends the whole Spark job. The failing record is then searched for, and the job is
repeated without it if the ledger has it as skipped, or else up to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.errors import Where
from mirror_lib.features.transforms.copy.failing_records import (
    Failure,
    Found,
    OffsetRange,
    failing_record,
    named_record,
)
from mirror_lib.features.transforms.record_mark import UntransformableRecordError, read_mark
from mirror_lib.features.transforms.rows.layout import number_of
from mirror_lib.features.transforms.rows.reader_result import new_secret
from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict
from mirror_lib.features.verify.model import CheckRange, PartitionCheck, VerifyJob
from mirror_lib.features.verify.planning.by_transform_chain import ChainChecks, for_second_read
from mirror_lib.features.verify.result_rows import VERDICT_DDL, from_arrow
from mirror_lib.features.verify.routed.findings import Place, RoutedFindings, TargetDigests
from mirror_lib.features.verify.routed.judge import judge_routed
from mirror_lib.features.verify.routed.multiset import Multiset
from mirror_lib.features.verify.routed.routed_rows import FoundRow
from mirror_lib.features.verify.routed.target_digests import DigestsJob
from mirror_lib.features.verify.transformed.model import (
    NumberedRange,
    RefusedRecord,
    RowVerifyJob,
    first_refusal,
    numbered_ranges,
)
from mirror_lib.offsets.runs import encode
from mirror_lib.topology.names import TopicPartition
from spark_jobs.bins import map_bins
from spark_jobs.failures import spark_errors, spark_failure
from spark_jobs.sealing import seal
from spark_jobs.spark_versions import to_arrow
from spark_jobs.transforms.chain_rows import ChainRows
from spark_jobs.transforms.record_failures import blames_no_record, failed_task, words_of
from spark_jobs.transforms.verify_row_tasks import (
    DRAINED_DDL,
    compare_rows,
    drain_rows,
    find_rows,
    read_rows,
    read_targets,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Classes of the results, one of each module.
ROW_RESULTS = (PartitionVerdict, RoutedFindings, FoundRow, Multiset, CheckRange, TopicPartition)
DIGEST_RESULTS = (TargetDigests, PartitionVerdict, Multiset, TopicPartition)
_log = logging.getLogger(__name__)
#: Maximum number of tries of a job, each without one more failing record.
_MOST_TRIES = 20


def verify_transformed(
    spark: SparkSession, job: VerifyJob, chains: Sequence[ChainChecks]
) -> list[PartitionVerdict | RoutedVerdict]:
    """Compare partitions with the transformed records of the source, and all routed records.

    Args:
        job: the job of the whole verification.
        chains: the part of it that goes through transforms.

    Raises:
        MirrorError: Spark gave up, or refuses a transform.
    """
    verifications = [TransformedVerification(spark, each) for each in chains]
    verdicts: list[PartitionVerdict | RoutedVerdict] = []
    made = RoutedFindings()
    for each in verifications:
        found, routed = each.run()
        verdicts += found
        made.take(routed)

    def find(wanted: Mapping[Place, frozenset[bytes]]) -> list[FoundRow]:
        return [row for each in verifications for row in each.find(wanted)]

    return [*verdicts, *judge_routed(job, made, partial(read_targets_with, spark), find)]


def read_targets_with(spark: SparkSession, job: DigestsJob) -> list[TargetDigests]:
    """Read target partitions, each bin in its own Spark task.

    Raises:
        MirrorError: Spark gave up.
    """
    task = partial(read_targets, *seal(job, DIGEST_RESULTS))
    try:
        return from_arrow([to_arrow(map_bins(spark, len(job.bins), task, VERDICT_DDL))])
    except spark_errors() as error:
        raise spark_failure(error, "the comparison", job.flow) from error


class TransformedVerification:
    """The partitions of one chain."""

    def __init__(self, spark: SparkSession, each: ChainChecks) -> None:
        self._chain = each.chain
        self._flow = str(each.job.flow)
        self._job = RowVerifyJob(verify=each.job, secret=new_secret())
        targets = {check.source.topic: check.target.topic for bin_ in each.job.bins for check in bin_}
        self._rows = ChainRows(spark, each.chain, targets, read_rows)

    def run(self) -> tuple[list[PartitionVerdict], RoutedFindings]:
        """Transform the records again; return the verdicts of the partitions, and the routed rows.

        Raises:
            MirrorError: Spark gave up, or refuses a transform.
        """
        for left in reversed(range(_MOST_TRIES)):
            try:
                sealed = seal(self._job, ROW_RESULTS)
                made = self._rows.transform(sealed, len(self._job.verify.bins))
                return _split_results(
                    from_arrow([to_arrow(made.mapInArrow(partial(compare_rows, *sealed), VERDICT_DDL))])
                )
            except spark_errors() as error:
                found = self._find(error) if left else None
                if found is None:
                    raise spark_failure(error, "the comparison", self._flow) from error
                self._job = self._without(found)
        raise AssertionError("the last try either ends or raises")

    def find(self, wanted: Mapping[Place, frozenset[bytes]]) -> list[FoundRow]:
        """Find the records of rows with the wanted digests; call it after `run`.

        Raises:
            MirrorError: Spark gave up.
        """
        verify = for_second_read(self._job.verify, wanted)
        if not verify.bins:
            return []
        job = replace(self._job, verify=verify, secret=new_secret())
        sealed = seal(job, ROW_RESULTS)
        try:
            made = self._rows.transform(sealed, len(verify.bins))
            return from_arrow([to_arrow(made.mapInArrow(partial(find_rows, *sealed, dict(wanted)), VERDICT_DDL))])
        except spark_errors() as error:
            raise spark_failure(error, "the comparison", self._flow) from error

    # ------------------------------------------------------------ records that fail

    def _find(self, error: Exception) -> Found | None:
        """The record for which a Spark job has failed; None if the cause was another one."""
        if blames_no_record(error):
            return None
        bins = self._job.verify.bins
        marked = read_mark(str(error))
        if marked is not None:
            ranges = {each.number: each for number in range(len(bins)) for each in numbered_ranges(self._job, number)}
            numbered = ranges.get(number_of(marked.place))
            named = named_record(self._read(numbered), marked.offset, self._probe) if numbered is not None else None
            if named is not None:
                return named
        number = failed_task(error, len(bins))
        checks = [check for bin_ in (bins if number is None else [bins[number]]) for check in bin_]
        wanted = [each for check in checks for each in self._ranges(check)]
        _log.warning("flow %s: a record cannot be transformed; searching for it: %s", self._flow, words_of(error))
        return failing_record(wanted, self._probe)

    def _read(self, each: NumberedRange) -> OffsetRange:
        """The offsets that the job reads of a range."""
        stop, _ = first_refusal(self._job, each.check, each.range)
        return OffsetRange(each.check.source, each.range.source_first, stop)

    def _ranges(self, check: PartitionCheck) -> Iterator[OffsetRange]:
        """The ranges of a partition that the job reads."""
        for range_ in check.ranges:
            stop, _ = first_refusal(self._job, check, range_)
            yield OffsetRange(check.source, range_.source_first, stop)
            if stop < range_.source_next:
                return

    def _probe(self, groups: Sequence[Sequence[OffsetRange]]) -> Failure | None:
        """Transform ranges of the source without comparing; each group is a task."""
        checks = {check.source: check for bin_ in self._job.verify.bins for check in bin_}
        bins = tuple(tuple(_only(checks[each.source], each) for each in group) for group in groups)
        verify = replace(self._job.verify, bins=bins, bin_max_bytes=None)
        job = replace(self._job, verify=verify, secret=new_secret())
        sealed = seal(job, ROW_RESULTS)
        try:
            to_arrow(self._rows.transform(sealed, len(bins)).mapInArrow(partial(drain_rows, *sealed), DRAINED_DDL))
        except spark_errors() as error:
            return Failure(error, failed_task(error, len(groups)))
        return None

    def _without(self, found: Found) -> RowVerifyJob:
        """The job with this record as a known failure."""
        failure = UntransformableRecordError(
            f"the record cannot be transformed ({', '.join(self._chain.names)}): {words_of(found.error)}.",
            where=Where(
                flow=self._flow, topic=found.source.topic, partition=found.source.partition, offset=found.offset
            ),
            action="If the transform has changed since the record was copied, the record can no longer be compared.",
        )
        known = dict(self._job.refused)
        refused = (*known.get(found.source, ()), RefusedRecord(found.offset, failure))
        known[found.source] = tuple(sorted(refused, key=lambda each: each.offset))
        return replace(self._job, refused=known, secret=new_secret())


def _split_results(found: Iterable[object]) -> tuple[list[PartitionVerdict], RoutedFindings]:
    """The results of `compare_rows` for all bins."""
    verdicts, routed = [], RoutedFindings()
    for each in found:
        if isinstance(each, PartitionVerdict):
            verdicts.append(each)
        elif isinstance(each, RoutedFindings):
            routed.take(each)
    return verdicts, routed


def _only(check: PartitionCheck, wanted: OffsetRange) -> PartitionCheck:
    range_ = CheckRange(wanted.first, wanted.end, 0, 0, records=0, encoded_runs=encode(()))
    return replace(check, ranges=(range_,))
