"""Payments: what transforms are measured with, and what must become of each."""

from __future__ import annotations

import json

import pytest

from tools.bench.workloads.payments import LEFT_OUT, LEFT_OUT_HEADER, Payments, fields_of, is_kept, masked


def test_about_a_third_is_left_out_and_those_alone_carry_a_header() -> None:
    made = Payments(7, 1000)
    values = [made.next()[1] for _ in range(3000)]

    left_out = [value for value in values if not is_kept(value)]

    assert 900 < len(left_out) < 1100
    assert {json.loads(value)["country"] for value in left_out} == {LEFT_OUT}
    for value in values:
        assert [name for name, _ in made.headers(value)] == ([] if is_kept(value) else [LEFT_OUT_HEADER])


def test_the_mask_leaves_four_digits_of_the_card_and_all_else_as_it_is() -> None:
    before = fields_of(Payments(7, 1000).next()[1])

    after = masked(before)

    cards = dict(before)["card"], dict(after)["card"]
    assert (len(cards[1]), cards[1][-4:], set(cards[1][:-4])) == (16, cards[0][-4:], {"*"})
    assert [each for each in after if each[0] != "card"] == [each for each in before if each[0] != "card"]


def test_how_json_is_written_does_not_count_but_the_order_of_fields_does() -> None:
    assert fields_of(b'{"a": 1.50, "b": "x"}') == fields_of(b'{"a":1.5,"b":"\\u0078"}')
    assert fields_of(b'{"a":1,"b":2}') != fields_of(b'{"b":2,"a":1}')
    for value in (None, b"", b"[1]", b'"text"', b'{"a":'):
        with pytest.raises(ValueError):
            fields_of(value)
