"""A seeded sample of mutants: as many from each group, and within a group as evenly as it can be over the kinds."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.mutants.generate import Fields, fields_of, mutants_of
from tools.mutants.groups import GROUPS
from tools.mutants.model import Kind, Mutant


def all_mutants(root: Path) -> dict[str, list[Mutant]]:
    """Return every mutant of the groups' packages, by group."""
    everything = [path.read_text(encoding="utf-8") for path in sorted((root / "mirror_lib").rglob("*.py"))]
    fields = Fields(tuple(found for source in everything for found in fields_of(source).classes))
    return {
        group: [
            mutant
            for folder in folders
            for path in sorted((root / folder).rglob("*.py"))
            for mutant in mutants_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"), group, fields)
        ]
        for group, folders in GROUPS.items()
    }


def sample(by_group: Mapping[str, Sequence[Mutant]], size: int, seed: str) -> list[Mutant]:
    """Return at least `size` mutants if there are so many; the same seed and code give the same ones."""
    groups = [group for group in sorted(by_group) if by_group[group]]
    each = -(-size // len(groups))
    return [mutant for group in groups for mutant in _from_group(by_group[group], each, f"{seed}:{group}")]


def _from_group(mutants: Sequence[Mutant], size: int, seed: str) -> list[Mutant]:
    chance = random.Random(seed)
    by_kind: dict[Kind, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_kind[mutant.kind].append(mutant)
    for kind in Kind:
        chance.shuffle(by_kind[kind])
    taken: list[Mutant] = []
    while len(taken) < size and any(by_kind.values()):
        for kind in Kind:
            if by_kind[kind] and len(taken) < size:
                taken.append(by_kind[kind].pop())
    return taken
