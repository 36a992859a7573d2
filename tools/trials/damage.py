"""Damage to a copy as data, the order in which it makes a planter write, and what an audit must then find. Pure.

All offsets are those of the source. What is expected follows from what is written alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tools.trials.model import Finding, Kind, Offsets, joined


@dataclass(frozen=True, slots=True)
class Missing:
    """Records that are not copied."""

    first: int
    last: int
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Repeated:
    """Records that are written once more behind another one, which is the last of them or a later one."""

    first: int
    last: int
    behind: int
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Reordered:
    """Records that are not written at their place, but behind another one, which may be an earlier one."""

    first: int
    last: int
    behind: int
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Changed:
    """Records of which one part is written differently: key, value, headers or timestamp."""

    first: int
    last: int
    part: str
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Extra:
    """Records of another producer after a record; -1: before the first."""

    behind: int
    count: int = 1
    partition: int = 0


Damage = Missing | Repeated | Reordered | Changed | Extra


@dataclass(frozen=True, slots=True)
class Piece:
    """Records that are written in a row."""

    count: int
    #: Offset of the first on the source; None for records of another producer.
    source: int | None
    #: What is wrong with them here; None if nothing is.
    kind: Kind | None = None
    #: Of changed ones.
    part: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write into one partition, and what is wrong with it."""

    partition: int
    pieces: tuple[Piece, ...]
    missing: tuple[Missing, ...] = ()

    @property
    def records(self) -> int:
        """Number of records on the target."""
        return sum(each.count for each in self.pieces)

    @property
    def equal(self) -> int:
        """Number of records that are right."""
        return sum(each.count for each in self.pieces if each.kind is None)

    def findings(self, *, among_equal: int = 1, marker_every: int = 0) -> tuple[Finding, ...]:
        """Return what an audit must find, if the target's offsets begin at 0.

        Args:
            among_equal: length of the runs of equal records in which every damage is.
            marker_every: number of records of a transaction on the target, behind which comes a marker; 0: none.
        """
        found = [
            Finding(Kind.MISSING, each.last - each.first + 1, self._at(each.first, each.last)) for each in self.missing
        ]
        offset = 0
        for each in self.pieces:
            if each.kind is not None:
                source = None if each.source is None else self._at(each.source, each.source + each.count - 1)
                target = self._at(*(_behind_markers(at, marker_every) for at in (offset, offset + each.count - 1)))
                found.append(Finding(each.kind, each.count, source, target, (each.part,) if each.part else ()))
            offset += each.count
        if among_equal > 1:
            return tuple(_enclosed(each, among_equal) for each in found)
        return tuple(joined(found))

    def _at(self, first: int, last: int) -> Offsets:
        return Offsets(self.partition, first, last)


def _behind_markers(record: int, every: int) -> int:
    """The offset of the record of this number."""
    return record + record // every if every else record


def _enclosed(finding: Finding, run: int) -> Finding:
    """The finding with its ranges widened to the run of equal records around it, on both sides."""
    source = finding.source or finding.target
    assert source is not None
    first = source.first - source.first % run
    here = Offsets(source.partition, first, first + run - 1)
    # Records that were inserted or removed before it shift the run on the target by less than its length.
    there = finding.target and Offsets(source.partition, max(first - run, 0), first + 2 * run)
    return replace(finding, source=finding.source and here, target=there, within=True)


def plan(partition: int, count: int, damage: Sequence[Damage]) -> Plan:
    """Return what to write of a partition.

    Args:
        partition: damage to other partitions is skipped.
        count: number of records of the source.

    Raises:
        ValueError: two faults are about the same record, or one is outside of the partition.
    """
    mine = [each for each in damage if each.partition == partition]
    cuts = {0, count}
    for each in mine:
        if not isinstance(each, Extra):
            cuts |= {each.first, each.last + 1}
        if not isinstance(each, Missing | Changed):
            cuts.add(each.behind + 1)
    if min(cuts) < 0 or max(cuts) > count:
        raise ValueError(f"damage outside of the {count} records of partition {partition}: {mine}")
    pieces = list(_inserted(mine, -1))
    bounds = sorted(cuts)
    for first, end in pairwise(bounds):
        over = [
            each
            for each in mine
            if isinstance(each, Missing | Reordered | Changed) and each.first <= first <= each.last
        ]
        if len(over) > 1:
            raise ValueError(f"several faults about source offset {first}: {over}")
        if not over:
            pieces.append(Piece(end - first, first))
        elif isinstance(over[0], Changed):
            pieces.append(Piece(end - first, first, Kind.CHANGED, over[0].part))
        pieces += _inserted(mine, end - 1)
    return Plan(partition, tuple(pieces), tuple(each for each in mine if isinstance(each, Missing)))


def _inserted(damage: Sequence[Damage], behind: int) -> Iterator[Piece]:
    """Yield what is written behind a source offset, in the order of the damage."""
    for each in damage:
        if isinstance(each, Missing | Changed) or each.behind != behind:
            continue
        if isinstance(each, Extra):
            yield Piece(each.count, None, Kind.EXTRA)
        else:
            kind = Kind.REPEATED if isinstance(each, Repeated) else Kind.REORDERED
            yield Piece(each.last - each.first + 1, each.first, kind)
