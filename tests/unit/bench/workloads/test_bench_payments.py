"""Payments: what transforms are measured with, and what must become of each."""

from __future__ import annotations

import json

import pytest

from bench.transforms.cases import filter_and_mask
from bench.workloads.payments import LEFT_OUT, LEFT_OUT_HEADER, Payments, field_names, fields_of, is_kept, masked
from bench.workloads.workload import BatchMill

_PAYMENTS = filter_and_mask(compiled=True).workload


def _values(count: int) -> list[bytes]:
    made = Payments(7, 1000)
    return [made.next()[1] for _ in range(count)]


def test_every_payment_is_a_json_object_of_exactly_the_asked_size() -> None:
    for value in _values(300):
        assert len(value) == 1000
        assert list(json.loads(value)) == field_names()


def test_keys_have_the_length_of_other_workloads() -> None:
    made = Payments(7, 500)

    assert {len(made.next()[0]) for _ in range(100)} == {14}


def test_values_too_small_for_the_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="a payment has at least"):
        Payments(7, 100).next()


def test_about_a_third_is_left_out_and_those_alone_carry_a_header() -> None:
    made = Payments(7, 1000)
    values = _values(3000)

    left_out = [value for value in values if not is_kept(value)]

    assert 900 < len(left_out) < 1100
    assert {json.loads(value)["country"] for value in left_out} == {LEFT_OUT}
    for value in values:
        assert [name for name, _ in made.headers(value)] == ([] if is_kept(value) else [LEFT_OUT_HEADER])


def test_the_mask_leaves_four_digits_of_the_card_and_all_else_as_it_is() -> None:
    before = fields_of(_values(1)[0])

    after = masked(before)

    cards = dict(before)["card"], dict(after)["card"]
    assert (len(cards[1]), cards[1][-4:], set(cards[1][:-4])) == (16, cards[0][-4:], {"*"})
    assert [each for each in after if each[0] != "card"] == [each for each in before if each[0] != "card"]


def test_how_json_is_written_does_not_count_but_the_order_of_fields_does() -> None:
    assert fields_of(b'{"a": 1.50, "b": "x"}') == fields_of(b'{"a":1.5,"b":"\\u0078"}')
    assert fields_of(b'{"a":1,"b":2}') != fields_of(b'{"b":2,"a":1}')


@pytest.mark.parametrize("value", [None, b"", b"[1]", b'"text"', b'{"a":'])
def test_what_is_no_object_has_no_fields(value: bytes | None) -> None:
    with pytest.raises(ValueError):
        fields_of(value)


def test_lz4_leaves_about_half_of_full_batches() -> None:
    batches = list(BatchMill(_PAYMENTS.scaled(10_000)).batches(0, 1, 0))

    assert 0.4 < sum(map(len, batches)) / (10_000 * 1014) < 0.7
