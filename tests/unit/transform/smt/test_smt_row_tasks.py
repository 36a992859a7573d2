"""Connect's transforms where rows are read: what Spark is given of them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from mirror_lib.features.transforms.arrow.rows import KAFKA_SCHEMA
from mirror_lib.features.transforms.record_mark import UntransformableRecordError, read_mark
from mirror_lib.features.transforms.rows.layout import place_of, with_source
from spark_jobs.transforms.smt_row_tasks import read_through_smts, sealed_smts
from tests.support.smt_chains import smt_chain

PLACE = place_of(3, 0)


def rows(*values: bytes | None, first: int) -> pa.RecordBatch:
    """Rows as they are read."""
    records = [
        {
            "key": b"k",
            "value": value,
            "topic": "orders",
            "partition": 3,
            "offset": offset,
            "timestamp": 0,
            "timestampType": 0,
            "headers": None,
        }
        for offset, value in enumerate(values, first)
    ]
    return with_source(pa.RecordBatch.from_pylist(records, KAFKA_SCHEMA), PLACE)


class Reading:
    """Stands for the reading half: gives batches, and knows whether it was ended."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self.batches = batches
        self.ended = False

    def __call__(self, stamp: str, sealed: bytes, number: int) -> Iterator[pa.RecordBatch]:
        assert (stamp, sealed, number) == ("stamp", b"job", 2)
        try:
            yield from self.batches
        finally:
            self.ended = True


def read_through(reading: Reading) -> Iterator[pa.RecordBatch]:
    masking = smt_chain({"type": "MaskField$Value", "fields": "card"}, value="json")
    return read_through_smts(reading, sealed_smts(masking, {"orders": "A.orders"}), "stamp", b"job", 2)


def test_a_record_that_cannot_be_taken_is_named_and_reading_ends() -> None:
    reading = Reading(rows(b"{}", first=0), rows(b'{"card": 1}', b"{", b"[", first=1), rows(b"{}", first=4))

    with pytest.raises(UntransformableRecordError) as caught:
        list(read_through(reading))

    found = read_mark(str(caught.value))
    assert found is not None
    assert found[:2] == (PLACE, 2)
    assert found.what.startswith(
        "topic orders, partition 3, offset 2: value.converter (JsonConverter) cannot transform the record"
    )
    assert reading.ended


def test_reading_ends_when_nobody_takes_rows_any_more() -> None:
    reading = Reading(rows(b"{}", first=0), rows(b"{}", first=1))
    given = read_through(reading)
    next(given)

    given.close()  # type: ignore[attr-defined]

    assert reading.ended
