"""Results on their way from executors to the driver, and what Spark loads before it forks its Python workers."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.copy.transfer.result_rows import from_arrow, to_arrow
from mirror_lib.errors import CorruptBatchError, MirrorError, Where
from mirror_lib.offsets.runs import OffsetRun, merge
from mirror_lib.planning.model import PartitionResult
from tests.support.brokers.partitions import partition_plan, partition_result
from tests.support.fresh_imports import loaded_after


def result(partition: int, runs: tuple[OffsetRun, ...], error: MirrorError | None) -> PartitionResult:
    return partition_result(
        partition_plan(partition=partition, end=1 << 40),
        source_next=runs[-1].source_next if runs else 0,
        target_next=runs[-1].target_next if runs else 0,
        records=sum(run.count for run in runs),
        batches=3,
        last_timestamp=1_700_000_000_000,
        seconds=0.25,
        runs=runs,
        certain=error is None,
        error=error,
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 100)), max_size=20))
def test_results_come_back_as_they_were(steps: list[tuple[int, int]]) -> None:
    runs, source, target = [], 0, 0
    for hole, count in steps:
        runs.append(OffsetRun(source + hole, target, count))
        source, target = source + hole + count, target + count
    sent = [result(number, merge(runs), None) for number in range(3)]
    # As Spark collects them.
    collected = pa.Table.from_batches([to_arrow(sent[:2]), to_arrow(sent[2:])])
    assert from_arrow([collected]) == sent


def test_errors_come_back_with_their_type_and_place() -> None:
    error = CorruptBatchError(
        "damaged.", where=Where(flow="A->B", topic="orders", partition=1, offset=7), action="Look."
    )
    (back,) = from_arrow([to_arrow([result(1, (), error)])])
    assert isinstance(back.error, CorruptBatchError)
    assert back.error.attributes() == error.attributes()
    assert not back.certain


def test_sending_does_not_load_pandas() -> None:
    assert loaded_after(f"from {to_arrow.__module__} import to_arrow; to_arrow([])", ["pandas"]) == []


def test_the_daemon_loads_nothing_that_is_heavy_or_starts_threads() -> None:
    """numpy's BLAS and Arrow start threads, which a fork does not survive; Kafka's C client does too."""
    heavy = ("numpy", "pyarrow", "pandas", "confluent_kafka", "sqlalchemy")

    assert loaded_after("import spark_jobs.copy_task", heavy) == []
