"""Invariants of a partition and its copy, as pure functions of the records read on both sides.

- A record on the target is one of the source's, unaltered, and is there once and in the source's order. Only after a
  decision with this effect (`recopy`, a position set by hand) the copy begins again after the existing records.
- A complete copy holds every record that the source ever held, except those that a command named as lost, or that an
  operator decided about. Of a compacted topic it holds the newest state of every key.
- With `mirror.offsets = same` it has the offset that it has on the source.
- A group in sync reads next on the target what it would read next on the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from tools.model.world import WRITTEN_DELETION, Seen

Place = tuple[str, int]


class ViolationError(Exception):
    """An invariant does not hold."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        #: Number of the step after which it was found; None: while settling.
        self.step: int | None = None


@dataclass(slots=True)
class History:
    """A source partition as written: all its records in their order, over all topics of its name."""

    compacted: bool = False
    records: list[Seen] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    #: Offset up to which the present topic was read.
    read_to: int = 0
    first_present: int = 0
    #: Ids that the source does not hold any more.
    gone: set[str] = field(default_factory=set)
    #: Ids that are gone because the source was restored to a state before them: as if they had never been written.
    undone: set[str] = field(default_factory=set)
    #: Ids that need not be on the target, since a command reported them or they were deleted there.
    excused: set[str] = field(default_factory=set)
    #: Excused ids that were copied to a target topic that was deleted since: its successor never held them, and a
    #: verification may say so.
    held_by_deleted: set[str] = field(default_factory=set)
    #: True if its target topic was deleted.
    lost_target: bool = False
    #: Ids that a reader of committed records never sees.
    aborted: set[str] = field(default_factory=set)
    #: Open transactions: the offset of the first record of each, by its id.
    open: dict[str, int] = field(default_factory=dict)
    #: True if a run has ended with 0 since the partition existed: later records must be copied.
    begun: bool = False
    #: True if the topic had been copied before the partition was added: then its first start is its beginning.
    late: bool = False
    #: Ids of transactions that were open until the topic was deleted: nobody can read that they ended.
    end_unread: set[str] = field(default_factory=set)
    #: Ids that were written to the target after a cutover and have not been copied back.
    away: set[str] = field(default_factory=set)
    _came_home: int = -1

    def add(self, found: Iterable[Seen], end: int) -> None:
        """Add new records of the source.

        Raises:
            ViolationError: a record was copied back twice, altered, or out of order.
        """
        for each in found:
            if each.id in self.order:
                self._come_home(each)
            else:
                self._append(each)
        self.read_to = max(self.read_to, end)

    def write_away(self, found: Iterable[Seen]) -> None:
        """Add records that were written to the target after a cutover."""
        for each in found:
            if each.id not in self.order:
                self.away.add(each.id)
                self._append(each)

    def _append(self, each: Seen) -> None:
        self.order[each.id] = len(self.records)
        self.records.append(each)

    def _come_home(self, each: Seen) -> None:
        order = self.order[each.id]
        if each.id not in self.away or order <= self._came_home:
            kind = "repeated" if each.id not in self.away else "reordered"
            raise ViolationError(kind, f"source offset {each.offset}: {each.id}, which was there, or came earlier")
        if self.records[order].digest != each.digest:
            raise ViolationError("altered", f"source offset {each.offset}: {each.id}")
        self.away.discard(each.id)
        self.records[order] = each
        self._came_home = order

    def rewind(self, found: Sequence[Seen], end: int) -> set[str]:
        """Take what a restored source holds for its present content; return the ids that it has lost by that."""
        here = {each.id for each in found}
        lost = {each.id for each in self.records if each.id not in here | self.gone}
        self.gone = {each.id for each in self.records if each.id not in here}
        self.undone = (self.undone | lost) - here
        self.first_present = self.order[found[0].id] if found else len(self.records)
        self.read_to = end
        return lost

    def newest(self, *, committed: bool = False) -> dict[bytes | None, Seen]:
        """Return the newest record of each key."""
        hidden = self.undone | self.unreadable(committed=committed)
        return {each.key: each for each in self.records if each.id not in hidden}

    def present(self, *, committed: bool) -> list[Seen]:
        """Return the visible records of the source, in order."""
        stable = min(self.open.values(), default=None) if committed else None
        return [
            each
            for each in self.records[self.first_present :]
            if each.id not in self.gone
            and each.id not in self.away
            and not (committed and each.id in self.aborted)
            and (stable is None or each.offset < stable)
        ]

    def unreadable(self, *, committed: bool) -> set[str]:
        """Return ids that readers of committed records do not see, ever or yet."""
        if not committed:
            return set()
        stable = min(self.open.values(), default=None)
        hidden = {} if stable is None else self.records[self.first_present :]
        return self.aborted | {each.id for each in hidden if stable is not None and each.offset >= stable}


@dataclass(slots=True)
class Copy:
    """The present target partition, and where copying may have begun again."""

    topic_id: str | None = None
    records: list[Seen] = field(default_factory=list)
    read_to: int = 0
    start: int = 0
    restarts: list[int] = field(default_factory=list)
    #: Source offset from which everything is copied again, after the newest of these.
    again_from: int | None = None

    @property
    def copies_again_from(self) -> int | None:
        """The source offset from which records are still to be copied again; None if none are, or it has begun."""
        return self.again_from if self.restarts and self.restarts[-1] >= self.read_to else None

    def held(self) -> list[Seen]:
        """Return what a reader from the beginning gets."""
        return [each for each in self.records if each.offset >= self.start]

    def ids(self) -> set[str]:
        """Return the ids of these records."""
        return {each.id for each in self.held()}


def check_offsets(place: Place, history: History, found: Iterable[Seen], strangers: Set[str]) -> None:
    """Raise if a record of the target has another offset than on the source."""
    for each in found:
        order = history.order.get(each.id)
        if order is not None and each.id not in strangers and history.records[order].offset != each.offset:
            text = f"{place}: {each.id} is at {each.offset}, on the source at {history.records[order].offset}"
            raise ViolationError("offset", text)


def check_order(place: Place, history: History, copy: Copy, strangers: Set[str], *, committed: bool) -> None:
    """Raise if a record is foreign, altered, repeated or out of order.

    Args:
        strangers: ids that the model itself has written to the target.
    """
    last, restarts = -1, sorted(copy.restarts)
    for each in copy.records:
        while restarts and each.offset >= restarts[0]:
            restarts.pop(0)
            last = -1
        if each.id == WRITTEN_DELETION and not _is_deletion_of(history, each):
            raise ViolationError("foreign", f"{place} target offset {each.offset} deletes {each.key!r}, and nobody has")
        if each.id in strangers:
            continue
        order = history.order.get(each.id)
        if order is None:
            raise ViolationError("foreign", f"{place} target offset {each.offset} holds {each.id!r}")
        if history.records[order].digest != each.digest:
            raise ViolationError("altered", f"{place} target offset {each.offset}: {each.id}")
        if committed and each.id in history.aborted:
            raise ViolationError("aborted", f"{place} target offset {each.offset}: {each.id} was aborted")
        if order <= last:
            kind = "repeated" if sum(other.id == each.id for other in copy.records) > 1 else "reordered"
            raise ViolationError(kind, f"{place} target offset {each.offset}: {each.id} came before")
        last = order


def _is_deletion_of(history: History, found: Seen) -> bool:
    """Return True if the source once deleted the key."""
    return history.compacted and found.deletes and any(e.deletes and e.key == found.key for e in history.records)


def missing(history: History, copy: Copy, *, committed: bool) -> list[str]:
    """Return ids that a complete copy would hold and this one does not."""
    held = copy.ids()
    not_needed = history.excused | history.undone | history.unreadable(committed=committed)
    wanted = [each for each in history.records if each.id not in not_needed]
    if not history.compacted:
        return [each.id for each in wanted if each.id not in held]
    newest = history.newest(committed=committed)
    state = {each.key: each for each in copy.held()}
    lacking = []
    for key, each in newest.items():
        there = state.get(key)
        if each.id in history.excused or (there is not None and there.id == each.id):
            continue
        if not each.deletes or (there is not None and not there.deletes):
            lacking.append(each.id)
    return lacking


def deletions(history: History) -> set[str]:
    """Return ids of deletions that are the newest of their key and that the source's cleaner has removed."""
    return {each.id for each in history.newest().values() if each.deletes and each.id in history.gone}


def outlived(history: History, copy: Copy) -> list[bytes | None]:
    """Return keys that still exist on the target though the source has deleted them and removed the deletion."""
    newest = {key: each for key, each in history.newest().items() if each.id in deletions(history)}
    state = {each.key: each for each in copy.held()}
    return [key for key in newest if key in state and not state[key].deletes]


def lost(history: History, copy: Copy, *, committed: bool) -> list[str]:
    """Return ids that are at the source, but are missing on the target without a known reason."""
    held = copy.ids() | history.excused
    return [each.id for each in history.present(committed=committed) if each.id not in held]


def check_group(
    what: str, history: History, copy: Copy, here: int, there: int, strangers: Set[str], *, committed: bool
) -> None:
    """Raise if a group that was reported in sync reads something else on the target than on the source.

    Args:
        here: its committed offset on the source.
        there: its committed offset on the target.
    """
    if there > copy.read_to:
        raise ViolationError("group", f"{what}: committed {there}, the log ends at {copy.read_to}")
    wanted = [each.id for each in history.present(committed=committed) if each.offset >= here]
    held = copy.ids()
    found = next(
        (each.id for each in copy.held() if each.offset >= max(there, copy.start) and each.id not in strangers), None
    )
    first = wanted[0] if wanted else None
    if found == first:
        return
    if found is None and first is not None and first not in held | history.excused and not _later(history, first, held):
        return  # It is copied next.
    if found is not None and _only_lost_between(history, found, first, committed=committed):
        return  # Gone at the source, and not required to be deleted there.
    if history.compacted and found == next((each for each in wanted if each in held), None):
        return  # The target's cleaner has removed old values; `missing` checks its state.
    text = f"{what} is in sync: reads {found} from {there} on, on the source {first} from {here} on"
    raise ViolationError("group", f"{text}; the target holds offsets {copy.start} to {copy.read_to}")


def check_reader(
    what: str,
    history: History | None,
    copy: Copy,
    here: int | None,
    there: int | None,
    read: Sequence[Seen],
    strangers: Set[str],
    *,
    committed: bool,
    undecided: bool = False,
) -> None:
    """Raise if a consumer of a group, without a reason about it, skips or repeats records of a target partition.

    Args:
        history: None if the source does not have the partition: all records of the copy are new to the group.
        copy: the target partition; a compacted one as the model has read it after the consumer.
        here: its committed offset on the source; without one all records are unread.
        there: its committed offset on the target.
        read: what it reads on the target.
        undecided: True if the last records there may be in a transaction of a killed run: they are copied again.
    """
    if here is not None and there is None:
        raise ViolationError("group", f"{what} is in sync, and committed {here} and nothing on the target")
    start = read[0].offset if read else copy.read_to
    if undecided and not read and there is not None:
        # An open transaction hides all that follows.
        start = there
    if history is not None:
        start = start if there is None else max(start, there)
        check_group(what, history, copy, here or 0, start, strangers, committed=committed)
    wanted = [each.id for each in copy.held() if there is None or each.offset >= there]
    got = [each.id for each in read]
    if history is not None and history.compacted:
        # The model has read the copy after the consumer, and the cleaner may have run in between.
        held = copy.ids()
        got = [each for each in got if each in held]
    if undecided and history is not None:
        wanted = wanted[: len(got)] if {*wanted[len(got) :]} <= history.order.keys() else wanted
    if (there is not None or history is None) and wanted != got:
        text = f"{what}: a consumer reads {len(got)} records {got[:5]} on the target, not {len(wanted)} {wanted[:5]}"
        raise ViolationError("group", f"{text}; committed {here} and {there}")


def check_not_beyond(what: str, history: History, copy: Copy, here: int, there: int, *, committed: bool) -> None:
    """Raise if a group has skipped records on the target that it has not read on the source.

    Args:
        here: its committed offset on the source.
        there: its committed offset on the target.
    """
    if there > copy.read_to:
        raise ViolationError("group", f"{what}: committed {there}, the log ends at {copy.read_to}")
    last = {each.id: each.offset for each in copy.held()}
    unread = [each.id for each in history.present(committed=committed) if each.offset >= here]
    skipped = [each for each in unread if last.get(each, there) < there]
    if (again := copy.copies_again_from) is not None and there <= copy.restarts[-1]:
        # They follow once more.
        coming = {each.id for each in history.present(committed=committed) if each.offset >= again}
        skipped = [each for each in skipped if each not in coming]
    if skipped:
        text = f"{what} was committed at {there}, from {here}: skips {len(skipped)} unread records {skipped[:5]}"
        raise ViolationError("group", text)


def _later(history: History, first: str, held: Set[str]) -> bool:
    """Return True if records after this one are on the target, so that it was skipped."""
    start = history.order[first]
    return any(each.id in held for each in history.records[start + 1 :])


def _only_lost_between(history: History, found: str, first: str | None, *, committed: bool) -> bool:
    not_needed = history.gone | history.aborted | history.unreadable(committed=committed)
    start = history.order.get(found)
    end = len(history.records) if first is None else history.order[first]
    return start is not None and start < end and all(each.id in not_needed for each in history.records[start:end])


def check_range(what: str, history: History, found: Sequence[Seen], *, committed: bool) -> None:
    """Raise if a copy of the present records of a source partition is not exactly these."""
    wanted = [(each.id, each.digest) for each in history.present(committed=committed)]
    got = [(each.id, each.digest) for each in found]
    if wanted != got:
        lacking, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
        text = f"{what}: {sum(lacking.values())} lacking, {sum(extra.values())} too many"
        raise ViolationError("backfill", text if lacking or extra else f"{what}: out of order")


def check_verdict(
    what: str,
    verdict: Mapping[str, object],
    history: History,
    copy: Copy,
    copied: Set[str],
    strangers: Set[str],
    *,
    committed: bool,
    by_state: bool,
    plain: bool,
    complete: bool,
) -> None:
    """Raise if the verdict of a verification on a partition is wrong.

    Args:
        verdict: the verdict.
        copied: ids that were ever copied.
        by_state: True if it compared the newest record of each key.
        plain: True if no operator has decided anything about the partition.
        complete: True if everything on the source was just copied.
    """
    gone: set[str] = set()
    if by_state:
        wrong = [f"key {key!r} lives on" for key in outlived(history, copy)]
        if complete and history.compacted:
            wrong += [f"{each} is missing" for each in missing(history, copy, committed=committed)]
    else:
        ranges: Any = verdict.get("ranges") or ()
        # Records that were not copied are not in the ranges that were compared.
        gone = set() if history.compacted else set(lost(history, copy, committed=committed))
        wrong = [
            f"{each.id} is gone"
            for each in history.records
            if each.id in gone and any(one["source_first"] <= each.offset < one["source_next"] for one in ranges)
        ] + [
            f"{each.id} is foreign"
            for each in _foreign(copy, strangers)
            if any(one["target_first"] <= each.offset < one["target_next"] for one in ranges)
        ]
        wrong = [] if history.compacted else wrong
    told_text = f"{what}: {verdict}"
    if verdict["verdict"] == "equal" and wrong:
        raise ViolationError("verify", f"{told_text}, and {wrong[:5]}")
    # An unexpected record after everything that was copied may be found or not.
    excused = history.held_by_deleted & history.excused - copy.ids()
    lacking = set(missing(history, copy, committed=committed)) & copied
    if history.lost_target and not by_state:
        # Records that newer ones replace are compared too, until the source's cleaner removes them.
        lacking |= {each.id for each in history.present(committed=committed)} & copied - copy.ids()
    is_clean = plain and not (wrong or gone & copied or excused or lacking or history.undone)
    is_clean = is_clean and not any(each.id in strangers for each in copy.held())
    # Where nothing was copied there is nothing to compare.
    must_be_equal = complete and bool(copy.held())
    if is_clean and (verdict["verdict"] == "different" or (must_be_equal and verdict["verdict"] != "equal")):
        raise ViolationError("verify", f"{told_text}, and both sides hold the same")


def _foreign(copy: Copy, strangers: Set[str]) -> list[Seen]:
    """Return unexpected records in between."""
    held = copy.held()
    last = max((number for number, each in enumerate(held) if each.id not in strangers), default=-1)
    return [each for each in held[:last] if each.id in strangers and each.id != WRITTEN_DELETION]
