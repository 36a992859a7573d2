"""Every reason code that waits for a decision has tests that take the ways on which its message names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mirror_lib import errors
from mirror_lib.errors import MirrorError, ReplicationError, TopicMissingError
from tests.support.ways_on import ELSEWHERE, WAYS_ON

PROJECT = Path(__file__).resolve().parents[3]
_DECIDED = 3


def waiting_for_somebody() -> set[str]:
    """Codes that stop a partition until somebody does something."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MirrorError)]
    return {
        kind.reason
        for kind in kinds
        if kind.exit_code == _DECIDED or issubclass(kind, ReplicationError) or kind is TopicMissingError
    }


def test_every_code_that_stops_a_partition_has_its_ways_on_tested() -> None:
    assert waiting_for_somebody() == set(WAYS_ON) | set(ELSEWHERE)
    assert set(WAYS_ON).isdisjoint(ELSEWHERE)


@pytest.mark.parametrize("named", sorted({each for tests in WAYS_ON.values() for each in tests}))
def test_the_named_tests_exist(named: str) -> None:
    file, _, name = named.partition("::")

    assert name in _tests_of(PROJECT / file)


@cache
def _tests_of(file: Path) -> frozenset[str]:
    return frozenset(_names(ast.parse(file.read_text(encoding="utf-8")), ""))


def _names(node: ast.Module | ast.ClassDef, outer: str) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            yield f"{outer}{each.name}"
        elif isinstance(each, ast.ClassDef):
            yield from _names(each, f"{each.name}::")
