"""Compare the newest records of the same keys. Pure.

The source is read after the target and to its end, so a key that it no longer has was deleted, or has expired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from mirror_lib.features.verify.findings import Difference, DifferenceKind
from mirror_lib.features.verify.state.digests import TOMBSTONE, Entries, join_keys
from mirror_lib.offsets.offset_map import LANDINGS, Landing, OffsetMap

_EXACT, _BEFORE, _BEYOND = (LANDINGS.index(each) for each in (Landing.EXACT, Landing.BEFORE, Landing.BEYOND))
#: Source offset of a record whose source offset is not known.
_UNKNOWN = -1

Offsets = NDArray[np.int64]
Ranges = Sequence[tuple[int, int]]


class KeyState(StrEnum):
    """The state of a key that is not a difference."""

    EQUAL = "equal"
    #: Its newest record is not copied yet, or may have changed while both sides were read.
    PENDING = "pending"
    #: An operator or a policy skipped its newest record.
    SKIPPED = "skipped"
    #: The record on one side is older than the log start of the other.
    EXPIRED = "expired"
    #: Deleted on both sides; one still holds the tombstone.
    DELETED = "deleted"
    #: The ledger knows that its record on the target never was on the source.
    FOREIGN = "foreign"
    #: The source has it from before the offset map begins: from before the first start.
    BEFORE_MAP = "before-map"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRules:
    """What is known of a partition besides the records of its logs."""

    #: Source offsets below it are copied.
    copied_to: int
    source_start: int
    target_start: int
    map: OffsetMap
    #: True if no run was writing: all target records are in the map.
    settled: bool = True
    #: Target offsets from here on were added after the position and the map were read.
    target_end: int
    #: Source offsets [first, next) that were not copied, sorted and apart.
    skipped: Ranges = ()
    #: Source offsets [first, next) at which the source has other records now than those that were copied.
    rewritten: Ranges = ()
    #: Target offsets [first, next) of records that never were on the source.
    foreign: Ranges = ()
    #: The end of the source for readers of committed records: what follows it, open transactions may still abort.
    source_end: int
    #: Offsets [first, next) of aborted transactions on either side, sorted and apart.
    aborted_on_source: Ranges = ()
    aborted_on_target: Ranges = ()


@dataclass(slots=True)
class StateFindings:
    """Findings, summed over buckets."""

    #: Differences to keep; all are counted.
    keep: int
    counts: Counter[KeyState] = field(default_factory=Counter)
    difference_count: int = 0
    deletions_lost: int = 0
    aborted: int = 0
    differences: list[Difference] = field(default_factory=list)
    #: Target offsets of the newest records of all keys whose deletion was lost.
    lost: list[Offsets] = field(default_factory=list)
    #: True if `lost` is to be filled; it takes 8 bytes for each key.
    keep_lost: bool = False

    def note(self, state: KeyState, chosen: NDArray[np.bool_]) -> None:
        """Count keys that are not a difference."""
        self.counts[state] += int(np.count_nonzero(chosen))

    def differ(
        self, kind: DifferenceKind, source: Offsets | None, target: Offsets | None, what: tuple[str, ...] = ()
    ) -> None:
        """Take differences of one kind, with the offsets on the sides that have the key; negative ones are unknown."""
        offsets = source if source is not None else target
        assert offsets is not None
        self.difference_count += len(offsets)
        for at in range(min(len(offsets), max(self.keep - len(self.differences), 0))):
            self.differences.append(Difference(kind, _known_offset(source, at), _known_offset(target, at), what))


def compare_states(source: Entries, target: Entries, late: Entries, rules: StateRules, findings: StateFindings) -> None:
    """Compare the newest entries of some keys.

    Args:
        source: read after the target, to the end of the log.
        target: of the same keys, selected by the digests of the keys.
        late: entries that were added to the target while both were read.
        findings: receives the result.
    """
    here, there = join_keys(source, target)
    _both(source[here], target[there], late, rules, findings)
    _only_on_target(_without(target, there), late, rules, findings)
    _only_on_source(_without(source, here), late, rules, findings)


def _both(source: Entries, target: Entries, late: Entries, rules: StateRules, findings: StateFindings) -> None:
    equal = source["content"] == target["content"]
    findings.note(KeyState.EQUAL, equal)
    source, target = source[~equal], target[~equal]
    origin = _origins(rules.map, target["offset"])
    open_ = (source["offset"] >= rules.copied_to) | (origin >= rules.source_end) | _among(target, late)
    skipped = ~open_ & _within(source["offset"], rules.skipped)
    foreign = ~open_ & ~skipped & _within(target["offset"], rules.foreign)
    findings.note(KeyState.PENDING, open_)
    findings.note(KeyState.SKIPPED, skipped)
    findings.note(KeyState.FOREIGN, foreign)
    differ = ~(open_ | skipped | foreign)
    aborted = differ & (_within(origin, rules.aborted_on_source) | _aborted_there(source, rules))
    _differ_by_abort(source["offset"][aborted], target["offset"][aborted], findings)
    differ &= ~aborted
    findings.differ(DifferenceKind.ALTERED, source["offset"][differ], target["offset"][differ], ("value",))


def _only_on_target(target: Entries, late: Entries, rules: StateRules, findings: StateFindings) -> None:
    deleted = target["content"] == TOMBSTONE
    findings.note(KeyState.DELETED, deleted)
    target = target[~deleted]
    offsets, codes = _looked_up(rules.map, target["offset"], to_source=True)
    exact = codes == _EXACT
    origin = np.where(exact, offsets, _UNKNOWN)
    # What was copied after the position was read may have been deleted since, and the deletion is not copied yet.
    new = (exact & (origin >= min(rules.copied_to, rules.source_end))) | ((codes == _BEYOND) & (not rules.settled))
    open_ = _among(target, late) | new | (target["offset"] >= rules.target_end)
    foreign = ~open_ & _within(target["offset"], rules.foreign)
    lost_at_source = exact & _within(origin, rules.rewritten) & ~(open_ | foreign)
    # If the map begins later, the age of the record is unknown.
    older = (exact & (origin < rules.source_start)) | ((codes == _BEFORE) & (rules.source_start > 0))
    expired = older & ~(open_ | foreign | lost_at_source)
    findings.note(KeyState.PENDING, open_)
    findings.note(KeyState.FOREIGN, foreign)
    findings.note(KeyState.SKIPPED, lost_at_source)
    findings.note(KeyState.EXPIRED, expired)
    differ = ~(open_ | foreign | lost_at_source | expired)
    aborted = differ & _within(origin, rules.aborted_on_source)
    _differ_by_abort(origin[aborted], target["offset"][aborted], findings)
    differ &= ~aborted
    lost, extra = differ & exact, differ & ~exact
    findings.deletions_lost += int(np.count_nonzero(lost))
    findings.differ(DifferenceKind.DELETION_LOST, origin[lost], target["offset"][lost])
    findings.differ(DifferenceKind.EXTRA, None, target["offset"][extra])
    if findings.keep_lost:
        findings.lost.append(target["offset"][lost].copy())


def _only_on_source(source: Entries, late: Entries, rules: StateRules, findings: StateFindings) -> None:
    deleted = source["content"] == TOMBSTONE
    findings.note(KeyState.DELETED, deleted)
    source = source[~deleted]
    offsets, codes = _looked_up(rules.map, source["offset"], to_source=False)
    open_ = (source["offset"] >= rules.copied_to) | _among(source, late)
    skipped = ~open_ & _within(source["offset"], rules.skipped)
    expired = (codes == _EXACT) & (offsets < rules.target_start) & ~(open_ | skipped)
    before = (codes == _BEFORE) & ~(open_ | skipped)
    findings.note(KeyState.PENDING, open_)
    findings.note(KeyState.SKIPPED, skipped)
    findings.note(KeyState.EXPIRED, expired)
    findings.note(KeyState.BEFORE_MAP, before)
    differ = ~(open_ | skipped | expired | before)
    aborted = differ & _aborted_there(source, rules)
    _differ_by_abort(source["offset"][aborted], None, findings)
    findings.differ(DifferenceKind.MISSING, source["offset"][differ & ~aborted], None)


def _differ_by_abort(source: Offsets, target: Offsets | None, findings: StateFindings) -> None:
    findings.aborted += len(source)
    findings.differ(DifferenceKind.ABORTED, source, target)


def _aborted_there(source: Entries, rules: StateRules) -> NDArray[np.bool_]:
    """Return which records the opposite flow has copied from aborted transactions of the target."""
    if not rules.aborted_on_target:
        return np.zeros(len(source), bool)
    offsets, codes = _looked_up(rules.map, source["offset"], to_source=False)
    exact: NDArray[np.bool_] = codes == _EXACT
    return exact & _within(offsets, rules.aborted_on_target)


def _origins(map_: OffsetMap, target: Offsets) -> Offsets:
    """Return the source offsets of records of the target; `_UNKNOWN` if the map does not have them."""
    offsets, codes = _looked_up(map_, target, to_source=True)
    return np.where(codes == _EXACT, offsets, _UNKNOWN)


def _looked_up(map_: OffsetMap, offsets: Offsets, *, to_source: bool) -> tuple[Offsets, NDArray[np.uint8]]:
    if map_.empty:
        return np.full(offsets.shape, _UNKNOWN, np.int64), np.full(offsets.shape, _BEFORE, np.uint8)
    found = map_.to_source_many(offsets) if to_source else map_.to_target_many(offsets)
    return found.offsets, found.codes


def _without(entries: Entries, places: NDArray[np.intp]) -> Entries:
    kept = np.ones(len(entries), bool)
    kept[places] = False
    return entries[kept]


def _among(entries: Entries, others: Entries) -> NDArray[np.bool_]:
    """Return which of the keys of some entries are among those of others."""
    found = np.zeros(len(entries), bool)
    if len(others) and len(entries):
        found[join_keys(entries, others)[0]] = True
    return found


def _within(offsets: Offsets, ranges: Ranges) -> NDArray[np.bool_]:
    """Return which offsets lie in one of some ranges, which are sorted and apart."""
    if not ranges:
        return np.zeros(offsets.shape, bool)
    firsts = np.array([first for first, _ in ranges], np.int64)
    nexts = np.array([end for _, end in ranges], np.int64)
    at = np.searchsorted(firsts, offsets, side="right") - 1
    return (at >= 0) & (offsets < nexts[np.maximum(at, 0)])


def _known_offset(offsets: Offsets | None, at: int) -> int | None:
    return None if offsets is None or offsets[at] < 0 else int(offsets[at])
