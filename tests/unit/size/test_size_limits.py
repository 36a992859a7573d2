"""The product's size is a budget: who needs more lines changes a number here, and says why in the same commit."""

from __future__ import annotations

import pytest

from tools.size.__main__ import PRODUCT, ROOT
from tools.size.count import Size, core_of, count_packages, is_feature

#: Lines of code (without docstrings, comments and blanks) of `mirror_lib` without its features.
_CORE = 40_228
#: Lines of a feature.
_FEATURE = 9_000
_LARGER = {"mirror_lib/features/transforms": 22_000}


@pytest.fixture(scope="module")
def sizes() -> dict[str, Size]:
    return dict(count_packages(ROOT, PRODUCT))


def test_the_core_is_no_larger_than_was_decided(sizes: dict[str, Size]) -> None:
    assert core_of(sizes).code <= _CORE


def test_no_feature_is_larger_than_one_person_can_hold_in_their_head(sizes: dict[str, Size]) -> None:
    lines = {name: size.lines for name, size in sizes.items() if is_feature(name)}

    assert len(lines) > 10
    assert {name: count for name, count in lines.items() if count > _LARGER.get(name, _FEATURE)} == {}
