"""Filters, columns and SELECTs on a real Spark: what is set, what stays byte by byte, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import Transform, TransformChain
from mirror_lib.features.transforms.record_mark import read_mark
from spark_jobs.transforms.frame import frame_of
from spark_jobs.transforms.functions import explain
from tests.support.frame_functions import through_arrow
from tests.support.spark.frames import (
    FIRST_OFFSET,
    NOON,
    PLACE,
    Given,
    Made,
    decoding,
    expressions,
    frame,
    json_by,
    like,
    select,
    transformed,
)

ORDER = json_by("country STRING, card STRING, sum DECIMAL(10,2), at TIMESTAMP, items ARRAY<STRUCT<n: INT>>")
ORDERS = decoding(ORDER)
VIENNA = Given(b'{"country": "AT", "card": "4711", "sum": 1.10, "unknown": [1]}', b"k", (("h", b"1"), ("h", None)))
BERLIN = Given(b'{"country":"DE"}', b"\xff\x00")
TOMBSTONE = Given(None, b"deleted")
OF_SPARK = (PySparkException, Py4JError)


def mark_of(error: BaseException) -> tuple[int, int] | None:
    """The place and the offset of the record that an error names."""
    found = read_mark(str(error))
    return None if found is None else (found.place, found.offset)


_headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
_records = st.builds(
    Given,
    st.none() | st.binary(max_size=30),
    st.none() | st.binary(max_size=30),
    _headers,
    partition=st.integers(0, 5),
    timestamp=st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)),
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(records=st.lists(_records, max_size=8))
@pytest.mark.parametrize(
    "chain",
    [
        (),
        (expressions(filter="true"), select("SELECT key FROM records")),
        (expressions(filter="partition >= 0", headers="headers", timestamp="timestamp"),),
    ],
    ids=["no transform", "a filter and a SELECT", "columns set to themselves"],
)
def test_what_is_not_changed_arrives_as_it_was(
    spark: SparkSession, chain: tuple[Transform, ...], records: list[Given]
) -> None:
    assert transformed(spark, records, *chain) == [like(each, FIRST_OFFSET + n) for n, each in enumerate(records)]


@pytest.mark.parametrize("condition", ["value.country = 'AT'", "records.value.country = 'AT'", "VALUE.Country = 'AT'"])
def test_a_filter_keeps_records_for_which_it_is_true(spark: SparkSession, condition: str) -> None:
    found = transformed(spark, [VIENNA, BERLIN, TOMBSTONE], expressions(ORDERS, condition))

    assert found == [like(VIENNA)]


def test_all_columns_see_the_record_as_it_was_before(spark: SparkSession) -> None:
    swap = expressions(decoding("string", "string"), key="value", value="key", topic="key", partition="length(value)")

    assert transformed(spark, [Given(b"value", b"key")], swap) == [
        Made(100, b"key", b"value", topic="key", partition=5)
    ]


def test_the_next_transform_sees_what_this_one_made(spark: SparkSession) -> None:
    first = expressions(ORDERS, topic="concat('of-', value.country)", partition="3")
    second = expressions(filter="topic = 'of-AT'", key="concat(topic, '/', partition)")

    assert transformed(spark, [VIENNA, BERLIN], first, second) == [
        replace(like(VIENNA), key=b"of-AT/3", topic="of-AT", partition=3)
    ]


@pytest.mark.parametrize(
    ("expression", "content"),
    [
        ("value.country", b"AT"),
        ("CAST(value.country AS BINARY)", b"AT"),
        ("length(value.card)", b"4"),
        ("value.sum", b"1.10"),
        ("value.country = 'AT'", b"true"),
        ("named_struct('card', value.at, 'sum', value.sum, 'in', struct(value.items AS i))",
         b'{"card":null,"sum":1.10,"in":{"i":null}}'),
        ("map('a', value.country, 'b', NULL)", b'{"a":"AT","b":null}'),
        ("array(value.country)", b'["AT"]'),
        ("struct(timestamp_micros(1) AS t)", b'{"t":"1970-01-01T00:00:00.000001Z"}'),
        ("parse_json('{\"a\": [1, null]}')", b'{"a":[1,null]}'),
        ("NULL", None),
    ],
)  # fmt: skip
def test_what_is_set_is_written_by_its_type(spark: SparkSession, expression: str, content: bytes | None) -> None:
    assert transformed(spark, [VIENNA], expressions(ORDERS, value=expression))[0].value == content


@pytest.mark.parametrize(
    ("expression", "headers"),
    [
        ("concat(headers, array(named_struct('key', 'h', 'value', CAST('2' AS BINARY))))",
         (("h", b"1"), ("h", None), ("h", b"2"))),
        ("array(struct('a', 'text'), struct('a', NULL))", (("a", b"text"), ("a", None))),
        ("map('a', 'text')", (("a", b"text"),)),
        ("NULL", ()),
    ],
)  # fmt: skip
def test_headers_are_set_in_several_forms(
    spark: SparkSession, expression: str, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    assert transformed(spark, [VIENNA], expressions(headers=expression))[0].headers == headers


def test_a_timestamp_is_set_from_what_is_one(spark: SparkSession) -> None:
    moved = expressions(timestamp="timestamp - INTERVAL 1 DAY")

    assert transformed(spark, [VIENNA], moved)[0].timestamp == NOON.replace(day=1)


@pytest.mark.parametrize(
    ("column", "expression", "said"),
    [
        ("key", "current_date()", "several text forms"),
        ("value", "INTERVAL 1 DAY", "several text forms"),
        ("timestamp", "5L", "without a unit"),
        ("headers", "'text'", "cannot cast"),
        ("key", "value.contry", "mirror.transform.change.key.*contry"),
        ("filter", "value.country", "mirror.transform.change.filter.*not a boolean"),
        ("filter", "value.country = = 1", "mirror.transform.change.filter.*Syntax error"),
    ],
)
def test_what_cannot_be_meant_so_is_refused_before_anything_is_read(
    spark: SparkSession, column: str, expression: str, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"(?i){said}"):
        transformed(spark, [VIENNA], expressions(ORDERS, **{column: expression}))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" \n",
        b'{"country":"\xff"}',
        b"{},{}",
        b"nul",
        b'{"country":',
        b'{"country":"AT"',
        b'{"country":"AT",}',
        b'{"country":"AT"} {}',
        b'{"country":"AT"} text',
        b'{"country":"AT"}}',
        b'{"country":"AT"}]',
        b'{"country":"AT"}],"more":{}',
        b'[{"country":"AT"}]',
        b'"AT"',
        b"1",
        b'{"unknown":[1,{"a":}]}',
        b'{"sum":"much"}',
        b'{"sum":true}',
        b'{"at":"yesterday"}',
        b'{"items":{"n":1}}',
        b'{"items":[1]}',
        b'{"items":[{"n":1},{"n":"many"}]}',
        b'{"items":[{"n":99999999999}]}',
        b'{"items":[{"n":""}]}',
    ],
)
def test_what_is_no_json_of_the_schema_fails_with_the_records_mark_and_is_never_null(
    spark: SparkSession, value: bytes
) -> None:
    with pytest.raises(OF_SPARK) as caught:
        transformed(spark, [VIENNA, Given(value), BERLIN], expressions(ORDERS, key="value.country"))

    assert mark_of(caught.value) == (PLACE, FIRST_OFFSET + 1)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("array<int>", b"[1,"),
        ("array<int>", b"{}"),
        ("array<int>", b'[1,"2"]'),
        ("map<string,struct<n:int>>", b'{"a":{"n":"1"}}'),
        ("map<string,int>", b"[]"),
        ("struct<n:int>", b'{"n":"1"}'),
        ("n VARIANT", b'{"n":[1,}'),
        ("variant", b'{"n":'),
        ("variant", b'{"n":1} {}'),
        ("variant", b'{"n":1,"n":2}'),
        ("variant", b""),
    ],
)
def test_what_is_no_json_of_any_other_type_fails_with_the_records_mark(
    spark: SparkSession, schema: str, value: bytes
) -> None:
    with pytest.raises(OF_SPARK) as caught:
        transformed(spark, [TOMBSTONE, Given(value)], expressions(decoding(json_by(schema)), "value IS NOT NULL"))

    assert mark_of(caught.value) == (PLACE, FIRST_OFFSET + 1)


def test_keys_that_are_no_json_have_the_records_mark_too(spark: SparkSession) -> None:
    keyed = expressions(decoding(key=json_by("id INT")), "key.id = 1")

    with pytest.raises(OF_SPARK, match="the key is not JSON") as caught:
        transformed(spark, [Given(b"{", b'{"id":1}'), Given(b"{", b'{"id":"1"}')], keyed)

    assert mark_of(caught.value) == (PLACE, FIRST_OFFSET + 1)


@pytest.mark.parametrize("condition", ["key IS NOT NULL AND value.country = 'AT'", "offset < 101 OR value.sum > 0"])
def test_what_is_no_json_fails_also_where_a_filter_does_not_ask_for_it(spark: SparkSession, condition: str) -> None:
    with pytest.raises(OF_SPARK) as caught:
        transformed(spark, [Given(b"{")], expressions(ORDERS, condition))

    assert mark_of(caught.value) == (PLACE, FIRST_OFFSET)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (b" null ", None),
        (b"{}", b'{"country":null,"card":null,"sum":null,"at":null,"items":null}'),
        (b'\n{"country":{"a":[1, "b"]},"card":1.25,"x":{"y":[]}}\n',
         b'{"country":"{\\"a\\":[1,\\"b\\"]}","card":"1.25","sum":null,"at":null,"items":null}'),
        (b'{"country":"a","country":"b","sum":1.239,"items":[{"n":1,"m":2},null]}',
         b'{"country":"b","card":null,"sum":1.24,"at":null,"items":[{"n":1},null]}'),
    ],
)  # fmt: skip
def test_json_of_the_schema_is_read_as_spark_reads_it(spark: SparkSession, value: bytes, content: bytes | None) -> None:
    assert transformed(spark, [Given(value)], expressions(ORDERS, value="value"))[0].value == content


@pytest.mark.parametrize(("depth", "taken"), [(998, True), (999, False)])
def test_json_may_be_nested_as_deeply_as_its_parser_allows(spark: SparkSession, depth: int, taken: bool) -> None:
    """Jackson allows 1,000 levels, of which one has always been taken for what goes around a document."""
    nested = Given(b'{"unknown":' + b"[" * depth + b"]" * depth + b"}")
    reading = expressions(ORDERS, "value.country IS NULL")

    if taken:
        assert transformed(spark, [nested], reading) == [like(nested)]
    else:
        with pytest.raises(OF_SPARK) as caught:
            transformed(spark, [nested], reading)
        assert mark_of(caught.value) == (PLACE, FIRST_OFFSET)


_documents = st.fixed_dictionaries(
    {"country": st.text(max_size=4), "items": st.lists(st.fixed_dictionaries({"n": st.integers(0, 9)}), max_size=2)},
    optional={"unknown": st.recursive(st.none() | st.booleans() | st.text(max_size=3), st.lists, max_leaves=4)},
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(_documents, min_size=1, max_size=5), data=st.data())
def test_documents_are_taken_whole_and_no_part_of_one_is(
    spark: SparkSession, documents: list[dict[str, Any]], data: st.DataObject
) -> None:
    reading = expressions(ORDERS, value="struct(value.country, value.items)")
    texts = [json.dumps(each).encode() for each in documents]
    place = data.draw(st.integers(0, len(texts) - 1))
    cut = texts[place][: data.draw(st.integers(1, len(texts[place]) - 1))]

    found = [json.loads(each.value or b"") for each in transformed(spark, [Given(text) for text in texts], reading)]
    with pytest.raises(OF_SPARK) as caught:
        transformed(spark, [Given(cut if number == place else text) for number, text in enumerate(texts)], reading)

    assert found == [{"country": each["country"], "items": each["items"]} for each in documents]
    assert mark_of(caught.value) == (PLACE, FIRST_OFFSET + place)


@pytest.mark.parametrize(
    ("schema", "parser"), [("country STRING, items ARRAY<STRUCT<n: INT>>", "from_json("), ("variant", "parseJson")]
)
def test_a_document_is_parsed_once_however_often_it_is_used(spark: SparkSession, schema: str, parser: str) -> None:
    """What Spark pushes below the decoding, it would decode for a second time."""
    country = "value.country" if schema != "variant" else "variant_get(value, '$.country', 'string')"
    often = expressions(
        decoding(json_by(schema)),
        f"{country} <> 'DE' AND length({country}) = 2",
        key=country,
        value=f"struct({country} AS c)",
    )

    # Records that the driver holds Spark would transform while it plans.
    source = through_arrow(frame(spark, VIENNA))

    made = frame_of(source, TransformChain((often,)), target_topic_of={"orders": "A.orders"})

    physical = explain(made).partition("== Physical Plan ==")[2]
    assert physical.count(parser) == 1


def test_a_side_that_is_not_read_may_be_anything(spark: SparkSession) -> None:
    keyed = replace(expressions(ORDERS, key="upper(key)"), reads=frozenset({"key"}))

    assert transformed(spark, [Given(b"{", b"k")], keyed)[0].value == b"{"


def test_json_without_a_schema_is_a_variant(spark: SparkSession) -> None:
    inner = expressions(decoding("json"), key="variant_get(value, '$.a[1]', 'string')")

    assert transformed(spark, [Given(b'{"a": [1, "x"]}'), TOMBSTONE], inner)[0].key == b"x"


def test_two_transforms_may_decode_in_two_ways(spark: SparkSession) -> None:
    found = transformed(
        spark,
        [VIENNA],
        expressions(ORDERS, value="named_struct('c', value.country)"),
        expressions(decoding(json_by("c STRING")), value="value.c"),
        expressions(decoding("string"), value="lower(value)"),
    )

    assert found == [replace(like(VIENNA), value=b"at")]


def test_a_select_sets_what_it_names(spark: SparkSession) -> None:
    text = """
    -- Braces {as in} texts are nothing to Spark.
    SELECT upper(value.country) || '{}' AS key FROM records WHERE value.card RLIKE '^\\\\d{4}$'
    """

    assert transformed(spark, [VIENNA, BERLIN], select(text, ORDERS)) == [replace(like(VIENNA), key=b"AT{}")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT r.key FROM records AS r",
        "SELECT ALL key FROM records;",
        "select`key`from`records`",
        "SELECT * FROM records",
    ],
)
def test_a_select_may_be_written_in_many_ways(spark: SparkSession, text: str) -> None:
    assert transformed(spark, [VIENNA, TOMBSTONE], select(text, ORDERS)) == [like(VIENNA), like(TOMBSTONE, 101)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n AS partition FROM records LATERAL VIEW explode(array(0, 5)) AS n",
        "SELECT explode(array(0, 5)) AS partition FROM records",
    ],
)
def test_a_select_may_make_several_records_of_one(spark: SparkSession, text: str) -> None:
    found = transformed(spark, [VIENNA, TOMBSTONE], select(text))

    first, second = like(VIENNA), like(TOMBSTONE, 101)
    assert found == [replace(each, partition=number) for each in (first, second) for number in (0, 5)]


def test_a_select_leaves_nothing_in_the_session(spark: SparkSession) -> None:
    before: list[Any] = spark.catalog.listTables()

    transformed(spark, [VIENNA], select("SELECT key FROM records"))

    assert spark.catalog.listTables() == before


@pytest.mark.parametrize(
    "transform",
    [
        lambda path: expressions(value=f"(SELECT max(value) FROM text.`{path}`)"),
        lambda path: expressions(filter=f"EXISTS (SELECT 1 FROM csv.`{path}`)"),
        lambda path: select(f"SELECT (SELECT max(value) FROM text.`{path}`) AS value FROM records"),
    ],
    ids=["a column", "a filter", "a SELECT"],
)
def test_a_file_cannot_be_read_as_a_table(
    spark: SparkSession, tmp_path: Path, transform: Callable[[Path], Transform]
) -> None:
    """Refused before Spark sees it (`tests/unit/features/transforms/test_transform_attacks.py`), then by Spark."""
    (tmp_path / "secret").write_text("s3cret\n")

    with pytest.raises(ConfigurationError, match="TABLE_OR_VIEW_NOT_FOUND"):
        transformed(spark, [VIENNA], transform(tmp_path / "secret"))
