"""Chains over rows by columns: the same as one record after the other.

Connect's transforms where rows are read: what Spark is given of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow.rows import KAFKA_SCHEMA
from mirror_lib.features.transforms.record_mark import UntransformableRecordError, read_mark
from mirror_lib.features.transforms.rows.layout import place_of, with_source
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.errors import SmtError
from mirror_lib.features.transforms.smt.record import RawRecord
from mirror_lib.features.transforms.smt.rows.columnar import runs_by_columns
from mirror_lib.features.transforms.smt.rows.model import RefusedRowError
from mirror_lib.features.transforms.smt.rows.stage import SmtRows
from mirror_lib.features.transforms.smt.settings import parse_settings
from spark_jobs.transforms.smt_row_tasks import read_through_smts, sealed_smts
from tests.support.smt_chains import smt_chain, smt_settings

#: Those that need no look into a key or value come first.
BY_COLUMNS = (
    {"type": "RegexRouter", "regex": r"A\.(.*)", "replacement": "B.$1"},
    {"type": "RegexRouter", "regex": r"B\.orders", "replacement": "A.orders"},
    {"type": "RegexRouter", "regex": "(.*)s", "replacement": "$1"},
    {"type": "TimestampRouter", "topic.format": "${topic}-${timestamp}", "timestamp.format": "yyyyMMdd"},
    {"type": "TimestampRouter", "topic.format": "${timestamp}", "timestamp.format": "HH:mm:ss.SSS"},
    {"type": "TimestampRouter", "topic.format": "at-${timestamp}", "timestamp.format": "yyyy h a mm"},
    {"type": "InsertHeader", "header": "h", "value.literal": "new"},
    {"type": "InsertHeader", "header": "j", "value.literal": "42"},
    {"type": "DropHeaders", "headers": "h"},
    {"type": "DropHeaders", "headers": "i,j"},
    {"type": "Filter"},
)
BY_RECORDS = (
    {"type": "MaskField$Value", "fields": "card"},
    {"type": "MaskField$Key", "fields": "card"},
    {"type": "InsertField$Value", "topic.field": "t", "partition.field": "p", "timestamp.field": "at"},
    {"type": "HeaderFrom$Value", "fields": "card", "headers": "h", "operation": "move"},
    {"type": "ValueToKey", "fields": "card"},
    {"type": "ExtractField$Value", "field": "card"},
    {"type": "HoistField$Key", "field": "whole"},
    {"type": "Cast$Value", "spec": "card:string"},
)
PREDICATES = {
    "tombstone": {"type": "RecordIsTombstone"},
    "headed": {"type": "HasHeaderKey", "name": "h"},
    "a": {"type": "TopicNameMatches", "pattern": r"A\..*"},
    "b": {"type": "TopicNameMatches", "pattern": r"B\..*"},
}
_predicates = st.sampled_from([None, *PREDICATES])
_times = st.sampled_from([None, 0, -1, 1_767_225_599_999, 1_767_225_600_000, -12_219_292_800_000, -(2**50)])
_times |= st.integers(-12_219_292_800_000, 4_000_000_000_000)


def chain(transforms: list[dict[str, str]], *, decodes: bool = True, **converters: str) -> SmtChain | None:
    """A chain of transforms with converters for `key`, `value` and `header`; None where they do not go together."""
    parsed = parse_settings(smt_settings(*transforms, predicates=PREDICATES, **converters))
    return None if parsed.chain is None else SmtChain(parsed.chain, decodes)


@st.composite
def chains(draw: st.DrawFn, transforms: tuple[dict[str, str], ...], *, decodes: bool = True) -> SmtChain:
    """Chains of some of these transforms, with and without predicates."""
    taken = []
    for each in draw(st.lists(st.sampled_from(transforms), min_size=1, max_size=4)):
        predicate = draw(_predicates)
        # Without one a Filter leaves nothing to look at.
        if predicate is None and each["type"] == "Filter":
            predicate = "tombstone"
        negate = {"negate": "true"} if draw(st.booleans()) else {}
        taken.append(each if predicate is None else {**each, "predicate": predicate, **negate})
    kinds = {
        "key": draw(st.sampled_from(["bytes", "json"])),
        "value": draw(st.sampled_from(["bytes", "json"])),
        "header": draw(st.sampled_from(["bytes", "simple", "json", "text"])),
    }
    made = chain(taken, decodes=decodes, **kinds) or chain(
        taken, decodes=decodes, key="json", value="json", header="simple"
    )
    assert made is not None
    return made


_contents = (
    st.none() | st.binary(max_size=5) | st.sampled_from([b"\xff\xfe", b'{ "card": 4711 }', b'{"card":null}', b"{}"])
)
_json = st.sampled_from([b'{"card": "4711", "sum": 1.10}', b'{"id":1,"card":true}', b'{"card":{"a":[]}}'])
_headers = st.lists(
    st.tuples(st.sampled_from(["h", "i", "j", "ä"]), st.none() | st.binary(max_size=4)), max_size=4
).map(tuple)


@st.composite
def rows(draw: st.DrawFn, contents: st.SearchStrategy[bytes | None] = _contents) -> list[dict[str, Any]]:
    """Rows of Spark's Kafka source."""
    topics = draw(st.sampled_from([("orders",), ("orders", "bills", "order")]))
    with_headers = draw(st.booleans())
    return [
        {
            "key": draw(contents),
            "value": draw(contents),
            "topic": draw(st.sampled_from(topics)),
            "partition": draw(st.integers(0, 3)),
            "offset": number,
            "timestamp": None if (time := draw(_times)) is None else time * 1000,
            "timestampType": draw(st.sampled_from([0, 0, 0, 1, -1, None])),
            "headers": draw(_headers) if with_headers else (),
        }
        for number in range(draw(st.integers(1, 8)))
    ]


def batch_of(given: list[dict[str, Any]]) -> pa.RecordBatch:
    """The rows as Arrow, as a part of a larger batch: what columns hold does not begin where they do."""
    found = [
        {**each, "headers": [{"key": name, "value": content} for name, content in each["headers"]] or None}
        for each in given
    ]
    return pa.RecordBatch.from_pylist([found[-1], *found, found[0]], KAFKA_SCHEMA).slice(1, len(found))


Row = dict[str, Any]


def one_after_the_other(smts: SmtChain, given: list[Row]) -> list[Row] | tuple[int, str]:
    """What records are left, or the number of the first that fails with what is wrong."""
    left = []
    for number, row in enumerate(given):
        time = None if row["timestampType"] == -1 or row["timestamp"] is None else row["timestamp"] // 1000
        topic = target_topic(row["topic"])
        try:
            made = smts.transform(RawRecord(topic, row["partition"], row["key"], row["value"], row["headers"], time))
        except SmtError as error:
            return number, str(error)
        if made is not None:
            contents = {name: getattr(made, name) for name in ("key", "value", "headers")}
            left.append({**contents, "offset": row["offset"], "topic": None if made.topic == topic else made.topic})
    return left


def by_columns(smts: SmtChain, batch: pa.RecordBatch) -> list[Row] | tuple[int, str]:
    """The same of a batch."""
    try:
        made = SmtRows(smts, target_topic).run(batch)
    except RefusedRowError as refused:
        return refused.row, str(refused.error)
    kept = batch if made.kept is None else batch.take(made.kept)
    columns = {name: kept.column(name) for name in ("offset", "key", "value", "headers")}
    columns["topic"] = pa.nulls(kept.num_rows, pa.string())
    columns |= made.columns
    for name, column in columns.items():
        column.validate(full=True)
        assert column.type == KAFKA_SCHEMA.field(name).type
    found = pa.RecordBatch.from_arrays(list(columns.values()), list(columns)).to_pylist()
    assert all(row["headers"] != [] for row in found)
    return [
        {**row, "headers": tuple((entry["key"], entry["value"]) for entry in row["headers"] or ())} for row in found
    ]


def target_topic(source: str) -> str:
    return "A.orders" if source in ("orders", "order") else f"A.{source}"


@given(chains(BY_COLUMNS), rows())
@settings(max_examples=300)
def test_columns_become_what_records_become(smts: SmtChain, given: list[Row]) -> None:
    assert runs_by_columns(smts)
    assert by_columns(smts, batch_of(given)) == one_after_the_other(smts, given)


@given(chains(BY_COLUMNS + BY_RECORDS), rows(_contents | _json))
@settings(max_examples=300)
def test_rows_become_what_records_become(smts: SmtChain, given: list[Row]) -> None:
    assert by_columns(smts, batch_of(given)) == one_after_the_other(smts, given)


@given(chains(BY_COLUMNS + BY_RECORDS), rows(_json))
def test_rows_that_fit_become_what_records_become(smts: SmtChain, given: list[Row]) -> None:
    assert by_columns(smts, batch_of(given)) == one_after_the_other(smts, given)


@given(chains(BY_COLUMNS + BY_RECORDS, decodes=False), rows(_contents | _json))
def test_so_they_do_where_nothing_is_decoded(smts: SmtChain, given: list[Row]) -> None:
    assert by_columns(smts, batch_of(given)) == one_after_the_other(smts, given)


PLACE = place_of(3, 0)


def read_rows(*values: bytes | None, first: int) -> pa.RecordBatch:
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
    reading = Reading(
        read_rows(b"{}", first=0), read_rows(b'{"card": 1}', b"{", b"[", first=1), read_rows(b"{}", first=4)
    )

    with pytest.raises(UntransformableRecordError) as caught:
        list(read_through(reading))

    found = read_mark(str(caught.value))
    assert found[:2] == (PLACE, 2)
    assert found.what.startswith(
        "topic orders, partition 3, offset 2: value.converter (JsonConverter) cannot transform the record"
    )
    assert reading.ended


def test_reading_ends_when_nobody_takes_rows_any_more() -> None:
    reading = Reading(read_rows(b"{}", first=0), read_rows(b"{}", first=1))
    given = read_through(reading)
    next(given)

    given.close()  # type: ignore[attr-defined]

    assert reading.ended
