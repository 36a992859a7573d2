"""Ranges of offsets: first and following one."""

from __future__ import annotations

from collections.abc import Iterable


def unite(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets in ascending ranges that neither overlap nor touch."""
    found: list[tuple[int, int]] = []
    for first, following in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], following)
        else:
            found.append((first, following))
    return found
