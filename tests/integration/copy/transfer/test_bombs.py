"""Batches of some kilobytes that become gigabytes: what looks into them takes no more memory than its setting says."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict
from mirror_lib.features.verify.model import VerifyJob
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.features.verify.run import VerifyOptions, verify_flow
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.kafka import Record
from tests.support.mirrored_topic import MirroredTopic
from tests.support.own_process import MEBIBYTE, measured
from tests.support.transforming import TransformHere
from tests.support.verifying import CompareHere

_MEMORY = 96 * MEBIBYTE
#: Beside `mirror.task.memory.bytes` and the modules: what is held while batches become rows, and rows batches.
_BASE = 160 * MEBIBYTE
_BATCH_RECORDS = 48
_BATCHES = 12
#: All of it is more than twice what may be held, and was held several times.
_WHOLE = _BATCHES * _BATCH_RECORDS * MEBIBYTE
_TRANSFORM = {
    "A->B.mirror.transforms": "any",
    "A->B.mirror.transform.any.topics": ".*",
    "A->B.mirror.transform.any.filter": "true",
}


@dataclass
class Elsewhere:
    """A runner that works in a process of its own and knows how much memory that took."""

    work: object
    grown: list[int] = field(default_factory=list)

    def __call__(self, job: CopyJob | VerifyJob) -> list[object]:
        found = measured(self.work, job)
        self.grown.append(found.grown)
        return found.result


def copied_raw(job: CopyJob) -> list[PartitionResult]:
    return [result for number in range(len(job.bins)) for result in copy_bin(job, number)]


def copied_as_rows(job: CopyJob) -> list[PartitionResult]:
    return TransformHere(rows_at_once=16)(job)


def compared_raw(job: VerifyJob) -> list[PartitionVerdict | RoutedVerdict]:
    return run_locally(1)(job)


def compared_as_rows(job: VerifyJob) -> list[PartitionVerdict | RoutedVerdict]:
    return CompareHere(rows_at_once=16)(job)


@pytest.mark.parametrize("way", ["raw", "rows"])
def test_many_batches_that_become_far_more_than_a_task_may_hold_are_copied_and_compared_within_its_memory(
    mirrored: MirroredTopic, way: str
) -> None:
    assert _WHOLE > 2 * (_MEMORY + _BASE)
    mirrored.create()
    batch = [Record(value=bytes(MEBIBYTE))] * _BATCH_RECORDS
    at_once = {"compression_type": "zstd", "linger_ms": 10_000, "batch_size": 1 << 30, "message_max_bytes": 10**9}
    for _ in range(_BATCHES):
        mirrored.produce(batch, **at_once)
    flow = mirrored.flow(_TRANSFORM if way == "rows" else {})
    copying = Elsewhere(copied_raw if way == "raw" else copied_as_rows)
    comparing = Elsewhere(compared_raw if way == "raw" else compared_as_rows)

    report = flow.run(runner=copying)
    verified = verify_flow(flow.config, ledger=flow.ledger, make_runner=lambda _: comparing, options=VerifyOptions())

    assert (report.errors, report.records) == ((), _BATCHES * _BATCH_RECORDS)
    assert verified.exit_code == 0, verified.to_dict()
    assert max(copying.grown + comparing.grown) < _MEMORY + _BASE


def test_many_records_that_the_target_refuses_in_one_small_batch_take_no_memory_for_each(
    mirrored: MirroredTopic,
) -> None:
    """Each has an error of its own: at once they took 200 MiB."""
    count = 250_000
    mirrored.create()
    mirrored.create_remote(configs={"cleanup.policy": "compact"})
    at_once = {"compression_type": "zstd", "linger_ms": 60_000, "batch_size": 1 << 30, "batch_num_messages": count}
    queue = {"message_max_bytes": 10**9, "queue_buffering_max_messages": 2 * count}
    mirrored.produce([Record(value=b"", key=None)] * count, **at_once, **queue)
    copying = Elsewhere(copied_raw)

    report = mirrored.flow({"mirror.poison.policy": "skip"}).run(runner=copying)

    assert (report.errors, report.records, report.skipped) == ((), 0, count)
    assert max(copying.grown) < 150 * MEBIBYTE


def test_a_record_that_does_not_fit_stops_its_partition_until_the_setting_is_raised(mirrored: MirroredTopic) -> None:
    mirrored.create()
    values = [b"before", bytes(5 * MEBIBYTE), b"behind"]
    at_once = {"compression_type": "zstd", "linger_ms": 10_000, "message_max_bytes": 10**8}
    mirrored.produce([Record(value=value) for value in values], **at_once)
    small = {**_TRANSFORM, "mirror.task.memory.bytes": str(16 * MEBIBYTE)}

    stopped = mirrored.flow(small).run(runner=TransformHere())
    raised = mirrored.flow(_TRANSFORM).run(runner=TransformHere())

    (error,) = (result.error for result in stopped.results)
    assert (error and error.reason, error and error.where.offset, stopped.records) == ("beyond-task-memory", 1, 1)
    assert raised.errors == ()
    assert [each.value for each in mirrored.copied()] == values
