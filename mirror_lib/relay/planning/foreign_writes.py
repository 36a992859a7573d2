"""Idle partitions whose target log goes on behind what was copied. Pure.

Nothing is copied to them, so nothing is compared; the ends are known all the same, since each plan asks for them. An
end does not say what stands there: a record of another producer, or the marker of somebody's transaction, which harms
nobody. So it is told and stops nothing. The next run that has records compares, and stops at a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mirror_lib.relay.model import PartitionFacts

_NAMED = 3


def offsets_behind_the_copy(fact: PartitionFacts) -> int:
    """Offsets of the target's log that follow the copy of an idle partition, and that no run of the flow wrote.

    0 where a run may have written them: one that was interrupted, or one that has something to copy again now.
    """
    then, now = fact.copied_to, fact.target_now
    if fact.stopped or fact.interrupted or fact.position is None or then is None or now is None:
        return 0
    idle = fact.position >= fact.log_end
    if not idle or then.undecided or then.log_end is None or now.log_end is None or then.topic not in (None, now.topic):
        return 0
    return max(now.log_end - then.log_end, 0)


def foreign_notes(facts: Sequence[PartitionFacts]) -> Iterator[str]:
    """A warning about all such partitions of a flow; nothing where there are none."""
    # What the sources of a merge wrote, each in its own run, the position of one does not tell.
    sources = Counter(fact.target for fact in facts)
    alone = [fact for fact in facts if sources[fact.target] == 1]
    found = sorted((fact.target, offsets) for fact in alone if (offsets := offsets_behind_the_copy(fact)))
    if not found:
        return
    named = ", ".join(f"{target} ({offsets:,} offsets)" for target, offsets in found[:_NAMED])
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    yield (
        f"{len(found):,} partitions with nothing to copy have more on the target than was copied: {named}{more}. "
        "Another producer wrote there, records or transaction markers. Records stop the next run that has something to "
        "copy there (target-diverged). Find the producer; `mirror position set` continues behind them."
    )
