"""The positions in a flow's ledger, and what they say about those in Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from mirror_lib.cluster.topics.position_format import Position, next_copy
from mirror_lib.cluster.topics.position_store import PositionSnapshot
from mirror_lib.errors import LedgerBehindError, Where
from mirror_lib.identity.histories import SOUND_HISTORY, History, LedgerState, Runs, history_of
from mirror_lib.identity.positions import positions_in
from mirror_lib.identity.targets import CopiedTo
from mirror_lib.ledger.offset_rows import KnownPosition
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import FlowId, TopicPartition

#: How often positions are read that a run may be writing.
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class LedgerPositions:
    """The positions of a flow in its ledger."""

    rows: Mapping[TopicPartition, KnownPosition]
    runs: Runs

    @classmethod
    def read(cls, ledger: Ledger, flow: FlowId) -> Self:
        """Read them.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        return cls(ledger.known_positions(str(flow)), _KnownRuns(ledger))


class _KnownRuns:
    """Asks the ledger once about each run."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, bool] = {}

    def knows_run(self, run_id: str) -> bool:
        if run_id not in self._known:
            self._known[run_id] = self._ledger.knows_run(run_id)
        return self._known[run_id]


class Past(NamedTuple):
    """What the ledger has about a position in Kafka."""

    #: The copy that the position belongs to, by the ledger if Kafka has none; None if an earlier version or
    #: MirrorMaker 2 began it.
    copy: str | None = None
    history: History = SOUND_HISTORY
    #: The ledger's position.
    row: KnownPosition | None = None

    @classmethod
    def of(
        cls,
        position: Position | None,
        ledger: LedgerPositions | None,
        source: TopicPartition,
        *,
        altered: bool = False,
    ) -> Self:
        """Compare a position with the ledger's.

        Args:
            position: None if Kafka has none.
            ledger: None if there is no ledger yet.
            source: the partition.
            altered: an operator has set the position in Connect's form, which the ledger cannot know yet.
        """
        row = ledger.rows.get(source) if ledger is not None else None
        if position is None:
            return cls(row.copy if row is not None else None, row=row)
        named = position.copy
        if position.claim is None and row is not None and not altered:
            # MirrorMaker 2 stores no copy. It has continued this one, or went back and began another one.
            went_back = row.offset > position.offset
            named = next_copy(row.copy, f"back-{row.run_id}-{position.offset}") if went_back else row.copy
        history = SOUND_HISTORY if ledger is None or altered else history_of(position, row, ledger.runs)
        return cls(named, history, row)

    @property
    def was_begun(self) -> bool:
        """True if a run has begun the partition at its beginning and copied nothing."""
        return self.row is not None and self.row.offset < 0

    def copied_to(self, known: CopiedTo | None) -> CopiedTo | None:
        """Where the copied records are: by the ledger if Kafka's position was restored to an older one.

        Args:
            known: by Kafka's positions.
        """
        row = self.row
        if self.history.state is not LedgerState.AHEAD or row is None or row.target_offset is None:
            return known
        if known is None:
            return CopiedTo(None, None, None, row.target_offset)
        return known._replace(log_end=max(known.log_end or 0, row.target_offset), undecided=False)


def compared_positions(
    flow: FlowId,
    ledger: Ledger,
    read: Callable[[], PositionSnapshot],
    takes: Callable[[str], bool],
) -> tuple[Mapping[TopicPartition, Position], dict[TopicPartition, History]]:
    """The positions in Kafka, and the histories that the ledger lacks, next to a run that may be writing both.

    A run may end between both reads. So a difference counts only if a second read of both finds the same one.

    A position that only the ledger has is one of a lost position topic: whether the target has the copy is unknown. Of
    partitions that the flow does not copy any more nobody needs one.

    Args:
        flow: the flow.
        ledger: its ledger.
        read: reads the position topic.
        takes: whether a topic is of the flow: others may share its position topic, with ledgers of their own.

    Raises:
        MirrorError: as `read`; or the ledger cannot be read.
    """
    snapshot = read()
    lacking: dict[TopicPartition, tuple[Position | None, History]] = {}
    for _ in range(_LOOKS):
        known, before, positions = LedgerPositions.read(ledger, flow), lacking, positions_in(snapshot)
        pasts = ((each, position, Past.of(position, known, each)) for each, position in positions.items())
        lacking = {each: (position, past.history) for each, position, past in pasts if not past.history.is_sound}
        if lost := set(_lost(snapshot, known)):
            moved = {row.topic for row in ledger.handovers.handed_over(str(flow))}
            lost = {each for each in lost - ledger.stopped_partitions(str(flow)) if each.topic not in moved}
        lacking |= dict.fromkeys(lost, (None, History(LedgerState.AHEAD)))
        lacking = {each: found for each, found in lacking.items() if takes(each.topic)}
        if lacking == before:
            break
        snapshot = read()
    return positions_in(snapshot), {each: history for each, (_, history) in lacking.items()}


def _lost(snapshot: PositionSnapshot, known: LedgerPositions) -> Iterator[TopicPartition]:
    """Partitions whose position with copied records only the ledger has."""
    for source, row in known.rows.items():
        is_known = source in snapshot.positions or source in snapshot.unreadable or source in snapshot.reset
        if row.offset >= 0 and not is_known:
            yield source


def missing_part(history: History) -> str:
    """What the ledger lacks, as the beginning of a sentence."""
    return f"the ledger lacks the history of source offsets {history.first} to {history.following - 1}"


def lacks_history(flow: FlowId, source: TopicPartition, history: History) -> LedgerBehindError:
    """The error of a partition whose position has another history than the ledger."""
    where = Where(flow=str(flow), topic=source.topic, partition=source.partition)
    if history.state is LedgerState.AHEAD:
        return LedgerBehindError(
            "the ledger knows of later positions than the target has: the target, or its position topic, was lost or "
            "restored to an older state.",
            where=where,
            action="Run the flow, and do what its error about the partition says.",
        )
    return LedgerBehindError(
        f"{missing_part(history)}: it was restored from a backup, or is another one than the last run's.",
        where=where,
        action=f"Restore the newest ledger; or run the flow, then `mirror map rebuild --flow '{flow}' --apply`. Where "
        f"the logs no longer have it: `mirror gaps accept --flow '{flow}'`.",
    )


def open_histories(flow: FlowId, ledger: Ledger) -> dict[TopicPartition, History]:
    """What the ledger lacks of each partition by its gaps: until a map is rebuilt, or an operator accepts it.

    To stop a partition does not say what the ledger lacks.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    found: dict[TopicPartition, History] = {}
    for gap in (*ledger.open_gaps(str(flow)), *ledger.stopped_gaps(str(flow))):
        if gap.cause == LedgerBehindError.reason:
            place = TopicPartition(gap.topic, gap.partition)
            known = found.get(place, History(LedgerState.BEHIND, gap.first_offset, gap.next_offset))
            first, following = min(known.first, gap.first_offset), max(known.following, gap.next_offset)
            found[place] = History(LedgerState.BEHIND, first, following)
    return found
