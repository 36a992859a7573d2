"""Whole chains: order, predicates, what is decoded and what is left alone, and what a chain says of itself."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import Where
from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.errors import SmtError
from mirror_lib.features.transforms.smt.record import RawRecord, Side, SmtRecord
from tests.support.smt_chains import smt_chain

MASK = {"type": "MaskField$Value", "fields": "card"}
ONLY_ORDERS = {"orders": {"type": "TopicNameMatches", "pattern": "orders"}}


def test_predicates_see_what_transforms_before_have_made() -> None:
    dropping = smt_chain(
        {"type": "RegexRouter", "regex": "test-(.*)", "replacement": "$1"},
        {"type": "Filter", "predicate": "orders"},
        predicates=ONLY_ORDERS,
    )

    assert dropping.transform(RawRecord("test-orders")) is None
    assert dropping.apply(SmtRecord("test-orders")) is None
    assert dropping.transform(RawRecord("test-other")) == RawRecord("other")
    assert dropping.apply(SmtRecord("test-other")) == SmtRecord("other")


def test_records_that_no_transform_works_on_need_not_be_json() -> None:
    masking = smt_chain(MASK | {"predicate": "orders"}, value="json", predicates=ONLY_ORDERS)
    binary = RawRecord("pictures", value=b"\xff\xd8")

    assert masking.transform(binary) is binary or masking.transform(binary) == binary
    with pytest.raises(SmtError, match=r"value.converter \(JsonConverter\) cannot transform the record"):
        masking.transform(RawRecord("orders", value=b"\xff\xd8"))


def test_a_value_that_stays_the_same_keeps_its_bytes() -> None:
    copying = smt_chain(
        {"type": "HeaderFrom$Value", "fields": "a", "headers": "a", "operation": "copy"}, value="json", header="simple"
    )

    after = copying.transform(RawRecord("t", value=b' { "a" : 1.0 } '))

    assert after.value == b' { "a" : 1.0 } '
    assert after.headers == (("a", b"1.0"),)


def test_the_key_is_made_of_the_value() -> None:
    keying = smt_chain(
        {"type": "ValueToKey", "fields": "id"}, {"type": "ExtractField$Key", "field": "id"}, key="text", value="json"
    )

    after = keying.transform(RawRecord("t", key=b"\xff", value=b'{ "id": 42 }'))

    assert after == RawRecord("t", key=b"42", value=b'{ "id": 42 }')


def test_a_tombstone_meets_a_transform_that_cannot_take_it() -> None:
    with pytest.raises(SmtError) as caught:
        smt_chain(MASK, value="json").transform(RawRecord("t"))

    error = caught.value.at(Where(topic="t", partition=0, offset=7))
    assert (error.configured, error.class_name) == ("transforms.t0", "MaskField$Value")
    assert "found: null" in error.problem
    assert error.where.offset == 7
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.attributes()["reason"] == "transform"
    assert again.attributes()["offset"] == 7


def test_an_empty_chain_hands_the_record_on() -> None:
    record = RawRecord("t", 1, b"k", b"v", (("h", None),), 3)

    assert SmtChain(model.ChainSettings()).transform(record) is record


def test_what_a_chain_and_its_transforms_say_of_themselves() -> None:
    plain = smt_chain({"type": "DropHeaders", "headers": "a"})
    assert (plain.may_drop, plain.may_route, plain.may_change_key, plain.may_change_value) == (False,) * 4
    assert plain.may_change_headers

    assert smt_chain({"type": "Filter", "predicate": "orders"}, predicates=ONLY_ORDERS).may_drop
    assert smt_chain({"type": "TimestampRouter"}).may_route
    assert smt_chain({"type": "ValueToKey", "fields": "a"}, value="json", key="json").may_change_key
    masking = smt_chain(MASK, value="json")
    assert (masking.may_change_key, masking.may_change_value) == (False, True)
    assert not masking.may_change_headers

    assert model.ValueToKey(("a",)).sides() == {Side.VALUE}
    assert model.ValueToKey(("a",)).changed_sides() == {Side.KEY}
    assert model.HeaderFrom(Side.KEY, (("a", "b"),), move=False).changed_sides() == frozenset()


@given(st.none() | st.binary(), st.none() | st.binary(), st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_routing_leaves_contents_alone(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    routing = smt_chain({"type": "RegexRouter", "regex": "(.*)", "replacement": "x.$1"}, value="json")

    after = routing.transform(RawRecord("t", 1, key, value, tuple(headers), 9))

    assert after == RawRecord("x.t", 1, key, value, tuple(headers), 9)


@given(st.binary() | st.dictionaries(st.text(), st.integers()).map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_transformed_or_refused_with_the_place(value: bytes) -> None:
    masking = smt_chain(MASK, value="json")
    try:
        is_object = isinstance(json.loads(value.decode()), dict)
    except ValueError:
        is_object = False
    if is_object:
        assert masking.transform(RawRecord("t", value=value)) is not None
        return
    with pytest.raises(SmtError) as caught:
        masking.transform(RawRecord("t", value=value))
    assert caught.value.configured in ("transforms.t0", "value.converter")
