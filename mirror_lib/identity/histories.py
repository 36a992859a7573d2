"""Whether the ledger has the history that led to a position in Kafka: pure rules.

Kafka is the source of truth for how far a partition is copied, and the ledger for all that was found on the way: the
offset map, gaps, decisions, verifications. Each position is a claim with a number, and belongs to a copy, which the
first run or a decision begins. The ledger has both for its newest position. If they are not those of the position in
Kafka, then one of them was restored from a backup, or is another one, and what the ledger has may be true of something
else: it is unknown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mirror_lib.cluster.topics.position_format import NOTHING_COPIED, Position, PositionState

if TYPE_CHECKING:
    from mirror_lib.ledger.offset_rows import KnownPosition


class LedgerState(StrEnum):
    """The ledger's state of one partition, compared with its position in Kafka."""

    CURRENT = "current"
    #: The position has gone on since, in the same copy: what the ledger has is true, but it lacks the newest part; or
    #: the position, of a partition of which nothing was copied.
    BEHIND = "behind"
    #: The ledger knows nothing of the position's copy: what it has is about another copy.
    OTHER_COPY = "other-copy"
    #: Kafka's position is older: the position topic or the whole target was restored.
    AHEAD = "ahead"


class History(NamedTuple):
    """What the ledger knows of the way to a position."""

    state: LedgerState
    #: Source offsets [first, following) about which the ledger may lack anything; empty if it lacks nothing.
    first: int = 0
    following: int = 0

    @property
    def is_gap(self) -> bool:
        """True if the ledger lacks a part."""
        return self.first < self.following

    @property
    def is_sound(self) -> bool:
        """True if what the ledger has is true of the position, and nothing is missing."""
        return not self.is_gap and self.state in (LedgerState.CURRENT, LedgerState.BEHIND)


class Runs(Protocol):
    """Knows the runs of a ledger."""

    def knows_run(self, run_id: str) -> bool:
        """Return true if the ledger has started the run."""


#: Of a position about which the ledger lacks nothing.
SOUND_HISTORY = History(LedgerState.CURRENT)


def history_of(position: Position, row: KnownPosition | None, runs: Runs) -> History:
    """Compare the ledger's newest position of a partition with the one in Kafka.

    Args:
        position: from Kafka.
        row: from the ledger.
        runs: rows of earlier versions have no claims: then the ledger has to know the run that wrote the position.
    """
    if position.claim is None:
        # MirrorMaker 2 continues a copy, and keeps no ledger: what the ledger has is as true as before.
        return SOUND_HISTORY
    following = position.offset + 1
    if row is None or row.claim is None:
        if _is_same(position, row) or (row is not None and position.offset == NOTHING_COPIED):
            return SOUND_HISTORY
        if position.run_id is not None and runs.knows_run(position.run_id):
            return SOUND_HISTORY
        return _behind(following, row)
    if row.claim > position.claim:
        # A run stores its claim in the ledger first, and may end before it stores it in Kafka, where executors of the
        # run before may still store how far they are.
        claimed = row.claim == position.claim + 1 and row.state == PositionState.OPEN and row.offset <= position.offset
        return SOUND_HISTORY if claimed else History(LedgerState.AHEAD, following, following)
    if row.copy != position.copy:
        return History(LedgerState.OTHER_COPY, 0, following)
    if row.claim < position.claim:
        return _behind(following, row)
    # The commit of a round is stored in the ledger first: then Kafka's position is still open.
    if position.state is PositionState.CLOSED and not _is_same(position, row):
        return _behind(following, row)
    return SOUND_HISTORY


def _is_same(position: Position, row: KnownPosition | None) -> bool:
    return row is not None and (row.offset, row.run_id) == (position.offset, position.run_id)


def _behind(following: int, row: KnownPosition | None) -> History:
    if row is not None and row.offset >= following:
        # The copy went back, and nothing says from where it has copied again.
        return History(LedgerState.OTHER_COPY, 0, following)
    return History(LedgerState.BEHIND, 0 if row is None else row.offset + 1, following)
