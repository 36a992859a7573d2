"""Idle partitions whose target log has more offsets than were copied. Pure.

Nothing is copied to them, so nothing is compared; but each plan requests the ends anyway. The flow reports what
follows and stops nothing: it may be harmless (`markers`). The next run that has records to copy compares, and stops at
a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mirror_lib.counted import counted
from mirror_lib.errors import Where
from mirror_lib.planning.markers import Ranges
from mirror_lib.planning.model import PartitionFacts
from mirror_lib.topology.names import FlowId

_NAMED = 3


def offsets_behind_copies(facts: Sequence[PartitionFacts]) -> Ranges:
    """Target offsets that follow the copies of idle partitions, and that no run of the flow has recorded."""
    # In a merge each source has its own run, and one position does not show what the other sources wrote.
    sources = Counter(fact.target for fact in facts)
    return {fact.target: offsets for fact in facts if sources[fact.target] == 1 and (offsets := _offsets_behind(fact))}


def _offsets_behind(fact: PartitionFacts) -> tuple[int, int] | None:
    """None if a run may have written them: an interrupted one, or one that has something to copy again now."""
    then, now = fact.copied_to, fact.target_now
    if fact.stopped or fact.interrupted or fact.position is None or then is None or now is None:
        return None
    idle = fact.position >= fact.log_end
    if not idle or then.undecided or then.log_end is None or now.log_end is None or then.topic not in (None, now.topic):
        return None
    return (then.log_end, now.log_end) if now.log_end > then.log_end else None


def foreign_notes(flow: FlowId, facts: Sequence[PartitionFacts], written: Ranges) -> Iterator[str]:
    """A warning about all such partitions of a flow; nothing if there are none.

    Args:
        facts: of all partitions of the flow.
        written: those that `offsets_behind_copies` found and that may have records there.
    """
    found = sorted((target, following - first) for target, (first, following) in written.items())
    if not found:
        return
    named = ", ".join(f"{target} ({counted(offsets, 'offset')})" for target, offsets in found[:_NAMED])
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    first = next(fact for fact in facts if fact.target == found[0][0])
    where = Where(flow=str(flow), topic=first.source.topic, partition=first.source.partition)
    command = where.position_set(first.position)
    others = ", and the same for each other partition" if len(found) > 1 else ""
    yield (
        f"The target has more than was copied to {counted(len(found), 'idle partition')}: {named}{more}. Another "
        "producer wrote there. Foreign records stop the next run that has new records for such a partition "
        f"(target-diverged). Find the producer. To continue after its records: {command}{others}."
    )
