"""Connect's transforms where rows are read: what Spark is given of them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from mirror_lib.cluster.batches.arrow.rows import KAFKA_SCHEMA
from mirror_lib.cluster.rows.layout import READ_SCHEMA, place_of, with_source
from mirror_lib.errors import ConfigurationError
from mirror_lib.transform.record_mark import UntransformableRecordError, read_mark
from mirror_lib.transform.smt.chain import SmtChain
from mirror_lib.transform.smt.settings import parse_settings
from spark_jobs.transforms.smt_row_tasks import read_through_smts, sealed_smts

PACKAGE = "org.apache.kafka.connect.transforms"
SETTINGS = {
    "predicates": "tombstone,odd",
    "predicates.tombstone.type": f"{PACKAGE}.predicates.RecordIsTombstone",
    "predicates.odd.type": f"{PACKAGE}.predicates.HasHeaderKey",
    "predicates.odd.name": "odd",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
NO_TOMBSTONES = {"type": "Filter", "predicate": "tombstone"}
ROUTE = {"type": "RegexRouter", "regex": r"A\.(.*)", "replacement": "B.$1", "predicate": "odd"}
MASK = {"type": "MaskField$Value", "fields": "card"}
PLACE = place_of(3, 0)


def smts(*transforms: dict[str, str]) -> SmtChain:
    lines = {**SETTINGS, "transforms": ",".join(f"t{number}" for number in range(len(transforms)))}
    for number, options in enumerate(transforms):
        lines |= {f"transforms.t{number}.{option}": text for option, text in options.items()}
        lines[f"transforms.t{number}.type"] = f"{PACKAGE}.{options['type']}"
    parsed = parse_settings(lines)
    assert parsed.chain is not None, parsed.problems
    return SmtChain(parsed.chain)


def rows(*values: bytes | None, first: int) -> pa.RecordBatch:
    """Rows as they are read; the odd ones have a header that says so."""
    records = [
        {
            "key": b"k",
            "value": value,
            "topic": "orders",
            "partition": 3,
            "offset": offset,
            "timestamp": 0,
            "timestampType": 0,
            "headers": [{"key": "odd", "value": None}] if offset % 2 else None,
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


def read_through(reading: Reading, *transforms: dict[str, str]) -> Iterator[pa.RecordBatch]:
    return read_through_smts(reading, sealed_smts(smts(*transforms), {"orders": "A.orders"}), "stamp", b"job", 2)


def test_rows_come_as_they_are_but_for_what_the_chain_changes_and_with_the_topic_that_it_sets() -> None:
    reading = Reading(rows(b"0", None, b"2", b"3", first=0))

    (found,) = read_through(reading, NO_TOMBSTONES, ROUTE)

    assert found.schema.names == [*READ_SCHEMA.names, "__mirror_topic"]
    assert found.schema.field("__mirror_topic").type == pa.string()
    read = found.select(READ_SCHEMA.names).to_pylist()
    (whole,) = reading.batches
    assert read == [row for row in whole.to_pylist() if row["value"] is not None]
    assert found.column("__mirror_topic").to_pylist() == [None, None, "B.orders"]


def test_a_batch_of_which_nothing_is_left_does_not_come() -> None:
    found = list(read_through(Reading(rows(None, None, first=0), rows(b"2", first=2)), NO_TOMBSTONES))

    assert [each.column("offset").to_pylist() for each in found] == [[2]]


def test_a_record_that_cannot_be_taken_is_named_and_reading_ends() -> None:
    reading = Reading(rows(b"{}", first=0), rows(b'{"card": 1}', b"{", b"[", first=1), rows(b"{}", first=4))

    with pytest.raises(UntransformableRecordError) as caught:
        list(read_through(reading, MASK))

    found = read_mark(str(caught.value))
    assert found is not None
    assert found[:2] == (PLACE, 2)
    assert found.what.startswith(
        "topic orders, partition 3, offset 2: value.converter (JsonConverter) cannot transform the record"
    )
    assert reading.ended


def test_reading_ends_when_nobody_takes_rows_any_more() -> None:
    reading = Reading(rows(b"0", first=0), rows(b"1", first=1))
    given = read_through(reading, ROUTE)
    next(given)

    given.close()  # type: ignore[attr-defined]

    assert reading.ended


def test_a_chain_of_another_version_is_not_opened() -> None:
    reading = Reading(rows(b"0", first=0))
    other = sealed_smts(smts(ROUTE), {"orders": "A.orders"})._replace(stamp="0.0.1/abc")

    with pytest.raises(ConfigurationError, match=r"0\.0\.1/abc"):
        read_through_smts(reading, other, "stamp", b"job", 2)
