"""Paths to nested fields (KIP-821)."""

from __future__ import annotations

import pytest

from mirror_lib.features.transforms.smt.field_path import parse_path

#: From Kafka's `FieldPathNotationTest`.
PATHS = {
    "..": ("", "", ""),
    "foo..": ("foo", "", ""),
    ".bar.": ("", "bar", ""),
    "foobarbaz": ("foobarbaz",),
    "foo.bar.baz": ("foo", "bar", "baz"),
    "foo`bar`baz": ("foo`bar`baz",),
    "`foo.bar.baz`": ("foo.bar.baz",),
    "foo.`bar.baz`": ("foo", "bar.baz"),
    "`foo.bar`.baz": ("foo.bar", "baz"),
    "foo.`bar`.baz": ("foo", "bar", "baz"),
    "foo.``bar.baz`": ("foo", "`bar.baz"),
    "foo.`bar.baz``": ("foo", "bar.baz`"),
    "foo.`ba`r.baz`": ("foo", "ba`r.baz"),
    "foo.ba`r.baz": ("foo", "ba`r", "baz"),
    "foo.``bar``.baz": ("foo", "`bar`", "baz"),
    "``foo.bar.baz``": ("`foo.bar.baz`",),
    "foo.`bar\\`.baz`": ("foo", "bar`.baz"),
    "foo.`bar.`baz`": ("foo", "bar.`baz"),
    "foo.`bar\\`.`baz`": ("foo", "bar`.`baz"),
    "foo.`bar\\\\`.\\`baz`": ("foo", "bar\\`.\\`baz"),
}


def test_paths_are_those_of_kafka_and_a_backtick_needs_a_partner(subtests: pytest.Subtests) -> None:
    for text, steps in PATHS.items():
        assert parse_path(text) == steps, text

    for text, position in [("`foo.bar.baz", 0), ("foo.`bar.baz", 4), ("foo.bar.`baz", 8), ("foo.bar.`baz\\`", 8)]:
        with subtests.test(text), pytest.raises(ValueError, match=f"position {position}"):
            parse_path(text)
