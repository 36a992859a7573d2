"""Idle partitions whose target log has more offsets than were copied. Pure.

Nothing is copied to them, so nothing is compared; but each plan requests the ends anyway. An end does not show what
follows: a record of another producer, or a transaction marker, which is harmless. So the flow reports it and stops
nothing. The next run that has records to copy compares, and stops at a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mirror_lib.relay.model import PartitionFacts

_NAMED = 3


def offsets_behind_the_copy(fact: PartitionFacts) -> int:
    """Number of target offsets that follow the copy of an idle partition, and that no run of the flow wrote.

    0 if a run may have written them: an interrupted one, or one that has something to copy again now.
    """
    then, now = fact.copied_to, fact.target_now
    if fact.stopped or fact.interrupted or fact.position is None or then is None or now is None:
        return 0
    idle = fact.position >= fact.log_end
    if not idle or then.undecided or then.log_end is None or now.log_end is None or then.topic not in (None, now.topic):
        return 0
    return max(now.log_end - then.log_end, 0)


def foreign_notes(facts: Sequence[PartitionFacts]) -> Iterator[str]:
    """A warning about all such partitions of a flow; nothing if there are none."""
    # In a merge each source has its own run, and one position does not show what the other sources wrote.
    sources = Counter(fact.target for fact in facts)
    alone = [fact for fact in facts if sources[fact.target] == 1]
    found = sorted((fact.target, offsets) for fact in alone if (offsets := offsets_behind_the_copy(fact)))
    if not found:
        return
    named = ", ".join(f"{target} ({offsets:,} offsets)" for target, offsets in found[:_NAMED])
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    yield (
        f"{len(found):,} idle partitions have more on the target than was copied: {named}{more}. Another producer "
        "wrote records or transaction markers there. Foreign records stop the next run that has new records for "
        "such a partition (target-diverged). Find the producer; `mirror position set` continues after them."
    )
