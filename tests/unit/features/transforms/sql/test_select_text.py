"""SELECTs that carry along what they do not name."""

from __future__ import annotations

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import SelectStatement
from mirror_lib.features.transforms.sql.select_text import carry_columns


def _carrying(text: str) -> tuple[str, int]:
    made = carry_columns(SelectStatement("a.sql", text), ("__a", "__b"))
    return made.text.partition("\n")[2], made.stars


def test_columns_are_put_first_in_a_plain_select_and_anything_else_is_refused(subtests: pytest.Subtests) -> None:
    for text, made, stars in [
        ("SELECT key FROM records", "SELECT __a, __b, key FROM records", 0),
        (
            "-- SELECT this\nselect/* x */key FROM records",
            "-- SELECT this\nselect __a, __b, /* x */key FROM records",
            0,
        ),
        ("SELECT ALL key FROM records", "SELECT ALL __a, __b, key FROM records", 0),
        ("SELECT all FROM records", "SELECT __a, __b, all FROM records", 0),
        ("SELECT '{a}' AS key FROM records", "SELECT __a, __b, '{{a}}' AS key FROM records", 0),
        ("SELECT * FROM records", "SELECT __a, __b, * FROM records", 1),
        ("SELECT r.*, 2 * 3 AS partition FROM records r", "SELECT __a, __b, r.*, 2 * 3 AS partition FROM records r", 1),
        ("SELECT count(*) AS key FROM records", "SELECT __a, __b, count(*) AS key FROM records", 0),
    ]:
        assert _carrying(text) == (made, stars), text

    for text in ["", "WITH a AS (SELECT 1) SELECT 1", "(SELECT 1)", "'SELECT' 1", "SELECT DISTINCT key"]:
        with subtests.test(text), pytest.raises(ConfigurationError, match=r"a\.sql is not a plain SELECT"):
            _carrying(text)
