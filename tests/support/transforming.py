"""Transformed copies without Spark: both halves run in threads of this process, with a function of rows in between."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.transforms.copy.model import FailedRecord, RowJob
from mirror_lib.features.transforms.copy.row_sink import write_bin
from mirror_lib.features.transforms.copy.row_source import read_bin
from mirror_lib.features.transforms.rows.layout import SOURCE_COLUMN
from mirror_lib.features.transforms.rows.reader_result import new_secret
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.topology.names import TopicPartition
from tests.support.kafka import Record, watermarks
from tests.support.waiting import wait_for

#: Given rows as the reading half gives them, those that are to be written.
RowFunction = Callable[[pa.RecordBatch], pa.RecordBatch]
#: Topic and partition by a record's value; what is None is not set.
Route = Callable[[bytes | None], tuple[str | None, int | None]]
#: Settings of a flow whose rows are never the same twice, written in transactions.
WITH_CHANCE = {
    "B.exactly.once.source.support": "enabled",
    "A->B.mirror.transforms": "stamp",
    "A->B.mirror.transform.stamp.headers": "array(struct('at' as key, cast(rand() as binary) as value))",
}
_WRITTEN = ("key", "value", "headers", "timestamp")
_numbers = itertools.count()


def unchanged(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Every record as it is."""
    return rows


def only(condition: Callable[[bytes | None], bool]) -> RowFunction:
    """Records whose value fulfils a condition."""

    def keep(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pa.array([condition(value) for value in rows.column("value").to_pylist()], pa.bool_()))

    return keep


def with_values(change: Callable[[bytes | None], bytes | None]) -> RowFunction:
    """Records with other values."""

    def changed(rows: pa.RecordBatch) -> pa.RecordBatch:
        values = pa.array([change(value) for value in rows.column("value").to_pylist()], pa.binary())
        return rows.set_column(rows.schema.get_field_index("value"), "value", values)

    return changed


def repeated(times: int) -> RowFunction:
    """Each record several times in a row."""

    def repeat(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.take(pa.array([row for row in range(rows.num_rows) for _ in range(times)], pa.int64()))

    return repeat


def marked(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Every record with a number behind its value that no other row ever has."""
    values = [(value or b"") + b"#%d" % next(_numbers) for value in rows.column("value").to_pylist()]
    return rows.set_column(rows.schema.get_field_index("value"), "value", pa.array(values, pa.binary()))


def marked_twice(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Two such rows for each record."""
    return marked(rows.take(pa.array([row for row in range(rows.num_rows) for _ in range(2)], pa.int64())))


def originals(found: Sequence[Record]) -> list[Record]:
    """The records that rows were made of, in the order of each partition."""
    plain = [replace(each, offset=None, value=(each.value or b"").split(b"#")[0]) for each in found]
    return sorted(plain, key=lambda each: each.partition)


def number_of(value: bytes | None) -> int:
    """The number of one of `tests.support.kafka.records`."""
    return int((value or b"value-0-").split(b"-")[1])


def upper(value: bytes | None) -> bytes | None:
    """The value in capitals."""
    return value and value.upper()


def thirds(topic: str) -> Route:
    """A route: a third of numbered records stays, the others go to two topics."""
    return lambda value: ((None, f"{topic}-one", f"{topic}-two")[number_of(value) % 3], None)


def without_offsets(found: Sequence[Record]) -> list[Record]:
    """Records without their offsets, in the order of each partition."""
    return sorted((replace(each, offset=None) for each in found), key=lambda each: each.partition)


def arrived(cluster: KafkaCluster, topic: str, count: int = 1, *, partitions: int = 1) -> Callable[[], None]:
    """Waits until a partition of the topic has so many records, committed or not."""

    def is_there() -> bool:
        return any(watermarks(cluster, topic, partition)[1] >= count for partition in range(partitions))

    return lambda: wait_for(is_there, 20)


class Killed(Exception):
    """Stands for the sudden end of a worker."""


@dataclass
class TransformHere:
    """A runner of copies, all of whose topics go through one function.

    Attributes:
        dies_after: rows of each bin after which its writing half ends without a word; None: never.
        before_death: is called then, and may wait for what was written to arrive.
        rows_at_once: how many rows Spark hands over at a time.
    """

    function: RowFunction = unchanged
    exact: bool = True
    failed: Mapping[TopicPartition, Sequence[FailedRecord]] = field(default_factory=dict)
    dies_after: int | None = None
    before_death: Callable[[], None] = lambda: None
    rows_at_once: int = 100
    attempt: int = 0
    #: Where records go by their values; a topic or partition that is None is not set.
    route: Route | None = None

    def __call__(self, job: CopyJob) -> list[PartitionResult]:
        failed = {source: tuple(records) for source, records in self.failed.items()}
        routes = self.route is not None
        row_job = RowJob(copy=job, exact=self.exact, failed=failed, routes=routes, secret=new_secret())
        with ThreadPoolExecutor(max_workers=len(job.bins)) as pool:
            found = list(pool.map(lambda number: self._bin(row_job, number), range(len(job.bins))))
        return [result for results in found for result in results]

    def _bin(self, job: RowJob, number: int) -> list[PartitionResult]:
        return write_bin(job, number, self.attempt, self._rows(job, number))

    def _rows(self, job: RowJob, number: int) -> Iterator[pa.RecordBatch]:
        given = 0
        for batch in read_bin(job, number, self.attempt):
            made = self.function(batch)
            for first in range(0, made.num_rows, self.rows_at_once):
                if self.dies_after is not None and given >= self.dies_after:
                    self.before_death()
                    raise Killed
                part = made.slice(first, self.rows_at_once)
                given += part.num_rows
                yield routed(part, self.route)


def routed(rows: pa.RecordBatch, route: Route | None) -> pa.RecordBatch:
    """Rows as they come to the writing half, and to the comparing one."""
    where = [route(value) if route else (None, None) for value in rows.column("value").to_pylist()]
    routes = pa.array([topic for topic, _ in where], pa.string()), pa.array([to for _, to in where], pa.int32())
    columns = [*(rows.column(name) for name in _WRITTEN), *routes, rows.column(SOURCE_COLUMN)]
    return pa.RecordBatch.from_arrays(columns, [*_WRITTEN, "topic", "partition", SOURCE_COLUMN])
