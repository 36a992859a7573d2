"""RegexRouter, TimestampRouter, InsertHeader, DropHeaders, HeaderFrom, Filter and the predicates."""

from __future__ import annotations

import pytest

from mirror_lib.transform.smt.apply import apply
from mirror_lib.transform.smt.model import (
    DropHeaders,
    Filter,
    HasHeaderKey,
    HeaderFrom,
    InsertHeader,
    RecordIsTombstone,
    RegexRouter,
    Stage,
    TimestampRouter,
    TopicNameMatches,
)
from mirror_lib.transform.smt.predicates import applies, holds
from mirror_lib.transform.smt.record import Header, Side, SmtRecord
from mirror_lib.transform.smt.values.data import (
    OPTIONAL_STRING,
    STRING,
    DataError,
    Field,
    Int8,
    Schema,
    SchemaType,
    Struct,
    struct_schema,
)
from mirror_lib.transform.smt.values.date_format import DateFormat

OLD = Header("old", b"1", Schema(SchemaType.BYTES))


def test_a_topic_is_renamed_if_its_whole_name_matches() -> None:
    for regex, replacement, topic, routed in [
        ("orig", "new", "orig", "new"),
        ("orig", "new", "original", "original"),
        (r"source\.(.*)", "$1", "source.orders", "orders"),
        (r"(?<site>\w+)-(\d\d\d\d\d\d\d\d)", "${site}.$2", "index-20160117", "index.20160117"),
        ("(.*)", "copy_$1", "orders", "copy_orders"),
        # matches() takes the longer branch, and replaceFirst() finds the shorter one.
        ("a|ab", "x", "ab", "xb"),
    ]:
        after = apply(RegexRouter(regex, replacement), SmtRecord(topic, 5, b"k", b"v"))

        assert after == SmtRecord(routed, 5, b"k", b"v"), regex


def test_a_topic_takes_the_time_of_the_record() -> None:
    router = TimestampRouter("foo-${topic}-${timestamp}", DateFormat.compile("yyyyMMdd"))

    after = apply(router, SmtRecord("test", timestamp=1_483_425_001_864))
    assert after is not None
    assert after.topic == "foo-test-20170103"
    with pytest.raises(DataError, match="Timestamp missing on record"):
        apply(router, SmtRecord("test"))


def test_headers_are_added_last_and_dropped_by_their_names() -> None:
    record = SmtRecord("t", headers=(OLD, OLD, Header("kept", None)))

    added = apply(InsertHeader("old", Schema(SchemaType.INT8), Int8(5)), record)
    assert added is not None
    assert added.headers == (*record.headers, Header("old", Int8(5), Schema(SchemaType.INT8)))
    dropped = apply(DropHeaders(frozenset({"old", "other"})), added)
    assert dropped is not None
    assert dropped.headers == (Header("kept", None),)
    assert apply(Filter(), record) is None


class TestHeaderFrom:
    PAIRS = (("a", "x"), ("missing", "y"))

    def test_fields_of_a_map_are_copied(self) -> None:
        record = SmtRecord("t", value={"a": 1, "b": 2}, headers=(OLD,))

        after = apply(HeaderFrom(Side.VALUE, self.PAIRS, move=False), record)

        assert after is not None
        assert after.value == {"a": 1, "b": 2}
        assert after.headers == (OLD, Header("x", 1), Header("y", None))

    def test_fields_of_a_map_are_moved(self) -> None:
        after = apply(HeaderFrom(Side.KEY, self.PAIRS, move=True), SmtRecord("t", key={"a": 1, "b": 2}))

        assert after is not None
        assert after.key == {"b": 2}
        assert after.headers == (Header("x", 1), Header("y", None))

    def test_fields_of_a_struct_are_moved_with_their_schemas(self) -> None:
        schema = struct_schema([Field("a", STRING), Field("b", OPTIONAL_STRING)])
        value = Struct.of(schema, [("a", "1"), ("b", None)])

        after = apply(
            HeaderFrom(Side.VALUE, (("b", "x"),), move=True), SmtRecord("t", value=value, value_schema=schema)
        )

        assert after is not None
        rest = struct_schema([Field("a", STRING)])
        assert (after.value_schema, after.value) == (rest, Struct(rest, {"a": "1"}))
        assert after.headers == (Header("x", None, OPTIONAL_STRING),)

    def test_a_struct_must_have_the_field_and_a_tombstone_has_none(self) -> None:
        copy = HeaderFrom(Side.VALUE, self.PAIRS, move=False)
        schema = struct_schema([Field("a", STRING)])
        record = SmtRecord("t", value=Struct.of(schema, [("a", "1")]), value_schema=schema)

        with pytest.raises(DataError, match="missing is not a field"):
            apply(copy, record)
        with pytest.raises(DataError, match=r"\[header copy\], found: null"):
            apply(copy, SmtRecord("t"))


def test_predicates_and_their_negation() -> None:
    for predicate, record, expected in [
        (TopicNameMatches("test-.*"), SmtRecord("test-1"), True),
        (TopicNameMatches("test-.*"), SmtRecord("A.test-1"), False),
        (HasHeaderKey("old"), SmtRecord("t", headers=(OLD,)), True),
        (HasHeaderKey("new"), SmtRecord("t", headers=(OLD,)), False),
        (RecordIsTombstone(), SmtRecord("t", value=None), True),
        (RecordIsTombstone(), SmtRecord("t", value=b""), False),
    ]:
        assert holds(predicate, record) is expected, predicate
        assert applies(Stage("s", Filter(), predicate), record) is expected, predicate
        assert applies(Stage("s", Filter(), predicate, negate=True), record) is not expected, predicate
