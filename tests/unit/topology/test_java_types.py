"""`ConfigDef.parseType` and `Boolean.parseBoolean`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.topology.java_types import ValueType, parse_list, parse_value


def test_values_are_trimmed_and_typed() -> None:
    for kind, text, value in [
        (ValueType.BOOLEAN, " TRUE ", True),
        (ValueType.BOOLEAN, "False", False),
        (ValueType.INT, " 25 ", 25),
        (ValueType.INT, "-1", -1),
        (ValueType.INT, "\u0663", 3),
        (ValueType.INT, "2147483647", 2**31 - 1),
        (ValueType.SHORT, "32767", 32767),
        (ValueType.LONG, "9223372036854775807", 2**63 - 1),
        (ValueType.DOUBLE, "1.5", 1.5),
        (ValueType.STRING, " x y ", "x y"),
        (ValueType.LIST, "", ()),
        (ValueType.LIST, "  ", ()),
        (ValueType.LIST, " a , b,c ", ("a", "b", "c")),
        (ValueType.LIST, "a,,b", ("a", "", "b")),
    ]:
        assert parse_value(kind, text) == value, text


def test_other_texts_are_refused(subtests: pytest.Subtests) -> None:
    for kind, text in [
        (ValueType.BOOLEAN, "yes"),
        (ValueType.BOOLEAN, ""),
        (ValueType.INT, "2147483648"),
        (ValueType.INT, "1.0"),
        (ValueType.INT, "1_000"),
        (ValueType.SHORT, "32768"),
        (ValueType.LONG, "5s"),
        (ValueType.DOUBLE, "nan"),
    ]:
        with subtests.test(text), pytest.raises(ValueError):
            parse_value(kind, text)


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_int_is_read(number: int) -> None:
    assert parse_value(ValueType.INT, f" {number}\t") == number


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1), min_size=1))
def test_members_of_lists_are_read(members: list[str]) -> None:
    assert parse_list(" , ".join(members)) == tuple(members)


def test_only_blanks_of_java_are_removed_from_members_of_lists() -> None:
    # As `ConfigDef`: `trim()`, then a split at `\\s*,\\s*`; a no-break space of a copied text stays.
    assert parse_list(" a\t,\x0b b ") == ("a", "b")
    assert parse_list("\u00a0a ,\u2003b") == ("\u00a0a", "\u2003b")
