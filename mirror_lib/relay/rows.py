"""Results as Arrow rows: the one thing that travels back from executors. Records never enter Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence

import pyarrow as pa

from mirror_lib.offsets.runs import decode, encode
from mirror_lib.relay.model import PartitionResult
from mirror_lib.topology.names import TopicPartition

RESULT_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("target_topic", pa.string(), nullable=False),
        pa.field("target_partition", pa.int32(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("source_next", pa.int64(), nullable=False),
        pa.field("target_first", pa.int64(), nullable=False),
        pa.field("target_next", pa.int64(), nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("batches", pa.int64(), nullable=False),
        pa.field("first_timestamp", pa.int64()),
        pa.field("last_timestamp", pa.int64()),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("runs", pa.binary(), nullable=False),
        pa.field("certain", pa.bool_(), nullable=False),
        pa.field("error", pa.binary()),
    ]
)

#: The same as Spark's DDL, for `mapInArrow`.
RESULT_DDL = (
    "topic string, partition int, target_topic string, target_partition int, start long, end long, "
    "source_next long, target_first long, target_next long, records long, bytes long, batches long, "
    "first_timestamp long, last_timestamp long, seconds double, runs binary, certain boolean, error binary"
)


def to_arrow(results: Sequence[PartitionResult]) -> pa.RecordBatch:
    """One row per partition."""
    rows = [
        {
            "topic": result.source.topic,
            "partition": result.source.partition,
            "target_topic": result.target.topic,
            "target_partition": result.target.partition,
            "start": result.start,
            "end": result.end,
            "source_next": result.source_next,
            "target_first": result.target_first,
            "target_next": result.target_next,
            "records": result.records,
            "bytes": result.bytes,
            "batches": result.batches,
            "first_timestamp": result.first_timestamp,
            "last_timestamp": result.last_timestamp,
            "seconds": result.seconds,
            "runs": encode(result.runs),
            "certain": result.certain,
            # The classes of our errors are importable on both sides, and the bytes come from our own tasks.
            "error": pickle.dumps(result.error) if result.error else None,
        }
        for result in results
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RESULT_SCHEMA)


def from_arrow(tables: Iterable[pa.Table | pa.RecordBatch]) -> list[PartitionResult]:
    """The inverse of `to_arrow`, for what Spark collected."""
    return [
        PartitionResult(
            source=TopicPartition(row["topic"], row["partition"]),
            target=TopicPartition(row["target_topic"], row["target_partition"]),
            start=row["start"],
            end=row["end"],
            source_next=row["source_next"],
            target_first=row["target_first"],
            target_next=row["target_next"],
            records=row["records"],
            bytes=row["bytes"],
            batches=row["batches"],
            first_timestamp=row["first_timestamp"],
            last_timestamp=row["last_timestamp"],
            seconds=row["seconds"],
            runs=tuple(decode(row["runs"])),
            certain=row["certain"],
            error=pickle.loads(row["error"]) if row["error"] else None,
        )
        for table in tables
        for row in table.to_pylist()
    ]
