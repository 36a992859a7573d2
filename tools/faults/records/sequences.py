"""Check that records arrived once, in order and unchanged: during a campaign, and of everything at its end.

Pure: the reader feeds it. Both checks detect a lost tail, because each producer ends with a marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from tools.faults.records.stamp import Stamp


class Stream(NamedTuple):
    """The records of one producer in one partition; its sequences are 0, 1, 2, ... to the end marker."""

    topic: str
    partition: int
    producer: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as read: its stamp and whether the rest still matches it."""

    #: None if the record has none that can be parsed.
    stamp: Stamp | None
    intact: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """Numbers of records; all of them must be 0."""

    missing: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    altered: int = 0

    def __add__(self, other: Findings) -> Findings:
        return Findings(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def since(self, before: Findings) -> Findings:
        """Return the new findings; a record that was missing and came late has become one out of order."""
        return Findings(*(max(a - b, 0) for a, b in zip(astuple(self), astuple(before), strict=True)))

    @property
    def total(self) -> int:
        """All together."""
        return sum(astuple(self))


@dataclass(slots=True)
class _Progress:
    next_sequence: int = 0
    skipped: set[int] = field(default_factory=set)


class ArrivalCheck:
    """Checks records while they arrive on the target, from their sequences alone."""

    def __init__(self) -> None:
        self._streams: dict[Stream, _Progress] = {}
        self._counted = Findings()

    def add(self, topic: str, partition: int, seen: Seen) -> None:
        """Add the next record of a partition, in the order of offsets."""
        if seen.stamp is None:
            # An unexpected record, or one whose stamp was altered: its sequence then counts as missing too.
            self._counted += Findings(altered=1)
            return
        stamp = seen.stamp
        progress = self._streams.setdefault(Stream(topic, partition, stamp.producer), _Progress())
        if not seen.intact:
            self._counted += Findings(altered=1)
        if stamp.sequence >= progress.next_sequence:
            progress.skipped.update(range(progress.next_sequence, stamp.sequence))
            progress.next_sequence = stamp.sequence + 1
        elif stamp.sequence in progress.skipped:
            progress.skipped.discard(stamp.sequence)
            self._counted += Findings(out_of_order=1)
        else:
            self._counted += Findings(duplicated=1)

    def findings(self) -> Findings:
        """Return the findings so far; skipped records that have not come since are missing."""
        return self._counted + Findings(missing=sum(len(each.skipped) for each in self._streams.values()))

    @property
    def records(self) -> int:
        """Different records seen in sequence so far."""
        return sum(each.next_sequence - len(each.skipped) for each in self._streams.values())


def compare(source: Sequence[Seen], target: Sequence[Seen]) -> Findings:
    """Compare all of one partition on the target with all of it on the source, of all producers."""
    # The source itself may have a record twice: brokers forget a producer in a power cut.
    if source == target and all(each.intact and each.stamp for each in source):
        return Findings()
    places = {(each.stamp.producer, each.stamp.sequence): place for place, each in enumerate(source) if each.stamp}
    unseen = set(places)
    furthest = -1
    duplicated = out_of_order = altered = 0
    for each in target:
        name = (each.stamp.producer, each.stamp.sequence) if each.stamp else None
        place = None if name is None else places.get(name)
        if name is None or place is None or not each.intact or each.stamp != source[place].stamp:
            altered += 1
        if name is None or place is None:
            continue
        if name not in unseen:
            duplicated += 1
            continue
        unseen.discard(name)
        if place < furthest:
            out_of_order += 1
        furthest = max(furthest, place)
    return Findings(len(unseen), duplicated, out_of_order, altered)


def input_faults(partition: Sequence[Seen], producers: Iterable[int]) -> list[str]:
    """Return errors in a partition of the source itself: it must hold every producer's sequence up to its end."""
    found = []
    for producer in producers:
        stamps = [each.stamp for each in partition if each.stamp is not None and each.stamp.producer == producer]
        if [stamp.sequence for stamp in stamps] != list(range(len(stamps))):
            found.append(f"the records of producer {producer} are not in sequence")
        elif not stamps or not stamps[-1].end or any(stamp.end for stamp in stamps[:-1]):
            found.append(f"the end marker of producer {producer} is at a wrong place")
    if any(each.stamp is None or not each.intact for each in partition):
        found.append("records do not match their checksums")
    return found
