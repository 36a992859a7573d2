"""The topics that a switch takes from its flow and gives back to the opposite flow; undone as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from mirror_lib.counted import counted
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.model import Attempt, Gate, Step
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.ledger.handovers import opposite_of

#: A topic's names on the source and the target of the flow that copies it.
Names = tuple[str, str]
_KEY = "handovers"


@dataclass(frozen=True, slots=True)
class Handover:
    """What a switch changes in the ledger."""

    flow: str
    #: Topics that the flow stops copying.
    away: tuple[Names, ...]
    back: str
    #: Topics that the opposite flow had handed over, and copies again.
    home: tuple[Names, ...]

    def to_facts(self) -> dict[str, Any]:
        """Plain data for the ledger."""
        away, home = [list(names) for names in self.away], [list(names) for names in self.home]
        return {_KEY: {"flow": self.flow, "away": away, "back": self.back, "home": home}}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self | None:
        """The inverse; None if nothing was recorded."""
        noted = facts.get(_KEY)
        if not noted:
            return None
        away, home = (tuple((names[0], names[1]) for names in noted[part]) for part in ("away", "home"))
        return cls(noted["flow"], away, noted["back"], home)


def plan(context: CutoverContext) -> Handover:
    """Return what the switch changes; the record of an interrupted attempt is kept, since it may be half done."""
    noted = Handover.from_facts(context.facts_of(Step.SWITCH))
    if noted is not None:
        return noted
    flow = context.whole_flow
    opposite = opposite_of(context.config, flow)
    back = "" if opposite is None else str(opposite.flow)
    gone = {row.target_topic: row.topic for row in context.ledger.handovers.handed_over(back)} if back else {}
    home = tuple((gone[topic.source], topic.source) for topic in context.topics if topic.source in gone)
    returned = {names[1] for names in home}
    # A failback flow takes only topics that were handed over: otherwise there is nothing to take from it.
    leads_back = context.flow.failback
    away = tuple((each.source, each.target) for each in context.topics if not (leads_back and each.source in returned))
    return Handover(context.definition.flow, away, back, home)


def apply(context: CutoverContext, change: Handover) -> None:
    """Change the ledger in one transaction; idempotent."""
    Cutovers(context.ledger).hand_over(
        _rows(context, change.flow, change.away),
        take_back_from=change.back or None,
        topics=[names[0] for names in change.home],
    )


def undo(context: CutoverContext, attempt: Attempt) -> Gate:
    """Restore the flows as before an attempt at the switch, wherever that attempt stopped."""
    change = Handover.from_facts(attempt.facts)
    if change is None:
        return Gate("handed over", True, "no topics had been handed over.")
    Cutovers(context.ledger).hand_over(
        _rows(context, change.back, change.home), take_back_from=change.flow, topics=[names[0] for names in change.away]
    )
    count = len(change.away) or len(change.home)
    return Gate("handed over", True, f"flow {change.flow} copies {counted(count, 'topic')} again.")


def _rows(context: CutoverContext, flow: str, topics: Iterable[Names]) -> list[HandedOverRow]:
    return handed_over_rows(flow, topics, cutover=context.definition.name, since=context.now(), by=context.by)


def handed_over_rows(
    flow: str, topics: Iterable[Names], *, cutover: str, since: datetime, by: str
) -> list[HandedOverRow]:
    """Return the ledger rows of topics that a flow does not copy any more.

    Args:
        cutover: its name, or the name of another cause of the hand-over.
    """
    return [
        HandedOverRow(flow=flow, topic=source, target_topic=target, cutover=cutover, since=since, by=by)
        for source, target in topics
    ]
