"""What must hold of a partition and its copy, as pure functions of what was read on both sides.

- A record on the target is one of the source's, unaltered, and is there once and in the source's order. Only after a
  decision that says so (`recopy`, a position set by hand) the copy begins again behind what is there.
- A complete copy holds every record that the source ever held, but those that a command named as lost, or that an
  operator decided about. Of a compacted topic it holds the newest state of every key.
- A group in sync reads next on the target what it would read next on the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from model.world import Seen

Place = tuple[str, int]


class ViolationError(Exception):
    """An invariant does not hold."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        #: Number of the step after which it was found; None: while everything came to rest.
        self.step: int | None = None


@dataclass(slots=True)
class History:
    """A source partition as it was written: all its records in their order, over all topics of its name."""

    compacted: bool = False
    records: list[Seen] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    #: Of the present topic.
    read_to: int = 0
    first_present: int = 0
    #: Ids that the source does not hold any more.
    gone: set[str] = field(default_factory=set)
    #: Ids that need not be on the target, since a command said so or the world took them away there.
    excused: set[str] = field(default_factory=set)
    #: Ids that a reader of committed records never sees.
    aborted: set[str] = field(default_factory=set)
    #: Open transactions: the offset of the first record of each, by its id.
    open: dict[str, int] = field(default_factory=dict)
    #: Whether a run has ended with 0 since the partition was there: what comes from then on must be copied.
    begun: bool = False

    def add(self, found: Iterable[Seen], end: int) -> None:
        """Note what is new at the source."""
        for each in found:
            self.order[each.id] = len(self.records)
            self.records.append(each)
        self.read_to = max(self.read_to, end)

    def present(self, *, committed: bool) -> list[Seen]:
        """What the source holds, in its order, as far as a reader sees it."""
        stable = min(self.open.values(), default=None) if committed else None
        return [
            each
            for each in self.records[self.first_present :]
            if each.id not in self.gone
            and not (committed and each.id in self.aborted)
            and (stable is None or each.offset < stable)
        ]

    def unreadable(self, *, committed: bool) -> set[str]:
        """What readers of committed records do not see, for good or yet."""
        if not committed:
            return set()
        stable = min(self.open.values(), default=None)
        hidden = {} if stable is None else self.records[self.first_present :]
        return self.aborted | {each.id for each in hidden if stable is not None and each.offset >= stable}


@dataclass(slots=True)
class Copy:
    """A target partition as it is, and where copying may have begun again."""

    topic_id: str | None = None
    records: list[Seen] = field(default_factory=list)
    read_to: int = 0
    start: int = 0
    restarts: list[int] = field(default_factory=list)

    def held(self) -> list[Seen]:
        """What a reader from the beginning gets."""
        return [each for each in self.records if each.offset >= self.start]

    def ids(self) -> set[str]:
        """Of what is held."""
        return {each.id for each in self.held()}


def check_order(place: Place, history: History, copy: Copy, strangers: Set[str], *, committed: bool) -> None:
    """Raise when a record is foreign, altered, repeated or out of order.

    Args:
        strangers: ids that the model itself has written to the target.
    """
    last, restarts = -1, sorted(copy.restarts)
    for each in copy.records:
        while restarts and each.offset >= restarts[0]:
            restarts.pop(0)
            last = -1
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


def missing(history: History, copy: Copy, *, committed: bool) -> list[str]:
    """Ids that a complete copy would hold and this one does not."""
    held = copy.ids()
    not_needed = history.excused | history.unreadable(committed=committed)
    wanted = [each for each in history.records if each.id not in not_needed]
    if not history.compacted:
        return [each.id for each in wanted if each.id not in held]
    newest = {each.key: each for each in history.records if each.id not in history.unreadable(committed=committed)}
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
    """Ids of deletions that are the newest of their key and that the source's cleaner has removed."""
    newest = {each.key: each for each in history.records}
    return {each.id for each in newest.values() if each.deletes and each.id in history.gone}


def check_group(
    what: str, history: History, copy: Copy, here: int, there: int, strangers: Set[str], *, committed: bool
) -> None:
    """Raise when a group that was said to be in sync reads something else on the target than on the source.

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
    if found is not None and _only_lost_between(history, found, first):
        return  # Records that the source does not have any more, and that nobody asked to be taken away there.
    if history.compacted and found == next((each for each in wanted if each in held), None):
        return  # The target's cleaner has removed what was superseded; `missing` looks at its state.
    text = f"{what} is in sync: reads {found} from {there} on, on the source {first} from {here} on"
    raise ViolationError("group", f"{text}; the target holds offsets {copy.start} to {copy.read_to}")


def _later(history: History, first: str, held: Set[str]) -> bool:
    """Whether records behind this one are on the target, so that it was passed over."""
    start = history.order[first]
    return any(each.id in held for each in history.records[start + 1 :])


def _only_lost_between(history: History, found: str, first: str | None) -> bool:
    start = history.order.get(found)
    end = len(history.records) if first is None else history.order[first]
    return (
        start is not None
        and start < end
        and all(each.id in history.gone or each.id in history.aborted for each in history.records[start:end])
    )


def check_range(what: str, history: History, found: Sequence[Seen], *, committed: bool) -> None:
    """Raise when a copy of what a source partition holds now is not exactly that."""
    wanted = [(each.id, each.digest) for each in history.present(committed=committed)]
    got = [(each.id, each.digest) for each in found]
    if wanted != got:
        lacking, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
        text = f"{what}: {sum(lacking.values())} lacking, {sum(extra.values())} too many"
        raise ViolationError("backfill", text if lacking or extra else f"{what}: out of order")
