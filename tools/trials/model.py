"""Findings that a trial expects, in the words of the audit's report but without its code. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What an audit can say of records, as docs/audit.md defines it."""

    MISSING = "missing"
    REPEATED = "repeated"
    REORDERED = "reordered"
    CHANGED = "changed"
    EXTRA = "extra"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True, order=True)
class Offsets:
    """First and last offset of records of a partition."""

    partition: int
    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of offsets."""
        return self.last - self.first + 1

    def at(self, number: int) -> Offsets:
        """Return the offset with this number in the range."""
        return Offsets(self.partition, self.first + number, self.first + number)

    def holds(self, other: Offsets) -> bool:
        """Return True if the other range is in this one."""
        return self.partition == other.partition and self.first <= other.first <= other.last <= self.last

    def __str__(self) -> str:
        """As in the report's tables."""
        offsets = str(self.first) if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.partition}:{offsets}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Records of one kind at one place."""

    kind: Kind
    records: int
    source: Offsets | None = None
    target: Offsets | None = None
    #: Of changed records: key, value, headers, timestamp.
    parts: tuple[str, ...] = ()
    #: True if the records are among equal ones: nobody can say which of them, so the ranges only enclose them.
    within: bool = False

    def __str__(self) -> str:
        """One line."""
        what = f" ({', '.join(self.parts)})" if self.parts else ""
        among = " among" if self.within else ""
        places = [f"{name} {each}" for name, each in (("source", self.source), ("target", self.target)) if each]
        return f"{self.records} {self.kind.value}{what}{among} {', '.join(places)}"

    def single(self) -> Iterator[Finding]:
        """Yield one finding per record; itself if its offsets have holes, or the records are among equal ones."""
        known = [each for each in (self.source, self.target) if each is not None]
        # A block that is repeated three times in a row is one range of the target.
        is_cyclic = self.kind is Kind.REPEATED and self.source is not None and self.records % self.source.count == 0
        if self.within or any(each.count != self.records for each in known[is_cyclic:]):
            yield self
            return
        for number in range(self.records):
            source = self.source and self.source.at(number % self.source.count)
            yield replace(self, records=1, source=source, target=self.target and self.target.at(number))


@dataclass(frozen=True, slots=True)
class Expected:
    """The result that an audit must have."""

    findings: tuple[Finding, ...] = ()
    #: Number of pairs of equal records; None if it is not known beforehand.
    equal: int | None = None
    #: True if the copy must be compared by its keys.
    by_key: bool = False
    #: False if the audit must say that timestamps are not compared.
    times_compared: bool = True

    @property
    def exit_code(self) -> int:
        """As docs/audit.md has it."""
        kinds = {each.kind for each in self.findings}
        if not kinds:
            return 0
        return 1 if kinds == {Kind.UNVERIFIABLE} else 3

    def __str__(self) -> str:
        """A cell of a table."""
        return summary(self.findings)


@dataclass(frozen=True, slots=True)
class Found:
    """The result that an audit had."""

    exit_code: int
    findings: tuple[Finding, ...] = ()
    equal: int = 0
    by_key: bool = False
    times_compared: bool = True
    #: Reasons for which something was not compared.
    why: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Found:
        """Return the result that `mirror audit --json` printed.

        Raises:
            KeyError, TypeError, ValueError: it is no such document.
        """
        partitions = document["partitions"]
        return cls(
            exit_code=document["exit_code"],
            findings=tuple(_finding(each) for found in partitions for each in found["findings"]),
            equal=document["equal"],
            by_key=any(each["by_key"] for each in partitions),
            times_compared=all(each["times_compared"] for each in partitions),
            why=tuple(each["why"] for each in partitions if each["why"]),
        )

    def __str__(self) -> str:
        """A cell of a table."""
        return summary(self.findings)


def _finding(data: Mapping[str, Any]) -> Finding:
    source, target = (
        each and Offsets(each["partition"], each["first_offset"], each["last_offset"])
        for each in (data["source"], data["target"])
    )
    return Finding(Kind(data["kind"]), data["records"], source, target, tuple(data["parts"]))


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Return the same findings with ranges as long as possible, in a fixed order.

    Whether an audit reports 3 and 4 as two ranges or as one is a matter of taste.
    """
    ordered = sorted((single for each in findings for single in each.single()), key=_order)
    found: list[Finding] = []
    for each in ordered:
        if found and (one := _together(found[-1], each)) is not None:
            found[-1] = one
        else:
            found.append(each)
    return found


def _order(finding: Finding) -> tuple[object, ...]:
    nowhere = Offsets(-1, -1, -1)
    return finding.kind.value, finding.parts, finding.target or nowhere, finding.source or nowhere


def _together(before: Finding, after: Finding) -> Finding | None:
    if before.within or after.within or (before.kind, before.parts) != (after.kind, after.parts):
        return None
    source, target = _follow(before.source, after.source), _follow(before.target, after.target)
    if source is _APART or target is _APART:
        return None
    return replace(before, records=before.records + after.records, source=source, target=target)


_APART = Offsets(-1, -1, -1)


def _follow(before: Offsets | None, after: Offsets | None) -> Offsets | None:
    if before is None and after is None:
        return None
    if before is None or after is None:
        return _APART
    follows = before.partition == after.partition and before.last + 1 == after.first
    return Offsets(before.partition, before.first, after.last) if follows else _APART


def summary(findings: Sequence[Finding]) -> str:
    """Return the number of records of each kind as one line."""
    counts = {kind: sum(each.records for each in findings if each.kind is kind) for kind in Kind}
    return ", ".join(f"{count:,} {kind.value}" for kind, count in counts.items() if count) or "nothing"


def differences(expected: Expected, found: Found) -> list[str]:
    """Return one sentence for each difference; none if the audit found exactly what is expected."""
    wanted, had = joined(expected.findings), joined(found.findings)
    for each in [each for each in wanted if each.within]:
        inside = [one for one in had if _is_inside(one, each)]
        if inside and sum(one.records for one in inside) == each.records:
            wanted.remove(each)
            had = [one for one in had if one not in inside]
    texts = [f"not found: {each}" for each in wanted if each not in had]
    texts += [f"false alarm: {each}" for each in had if each not in wanted]
    if expected.exit_code != found.exit_code:
        texts.append(
            f"exit code {found.exit_code}, expected {expected.exit_code}: {'; '.join(found.why) or 'no reason'}"
        )
    if expected.equal is not None and expected.equal != found.equal:
        texts.append(f"{found.equal:,} equal records, expected {expected.equal:,}")
    if expected.by_key != found.by_key:
        texts.append(f"compared by key: {found.by_key}, expected {expected.by_key}")
    if expected.times_compared != found.times_compared:
        texts.append(f"timestamps compared: {found.times_compared}, expected {expected.times_compared}")
    return texts


def _is_inside(finding: Finding, among: Finding) -> bool:
    if finding.kind is not among.kind or finding.parts != among.parts:
        return False
    for one, range_ in ((finding.source, among.source), (finding.target, among.target)):
        if (one is None) != (range_ is None):
            return False
        if one is not None and range_ is not None and not range_.holds(one):
            return False
    return True
