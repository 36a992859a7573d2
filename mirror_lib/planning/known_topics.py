"""Which topics a source had at the last run: one that it had not was created since, and `latest` must not pass it over.

Kafka does not say when a topic was created. So a run that has seen all topics notes their names, whatever the first
start is: that may be set to `latest` before the next run. A topic that it selects and has no position of yet is not
noted, so that it stays new until it has one, however often runs die before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import PartitionFacts


def topics_to_note(
    listed: Collection[str],
    known: Collection[str] | None,
    facts: Iterable[PartitionFacts],
    is_selected: Callable[[str], bool],
) -> frozenset[str]:
    """Return the topics that are not new for the next run.

    Args:
        listed: the topics of the source now.
        known: those that are noted; None at the first run, which takes all topics as they are.
        facts: of the partitions of all selected topics that could be read.
    """
    if known is None:
        # Of a ledger that is lost: others have positions, and these have none.
        return frozenset(listed) - {fact.source.topic for fact in facts if fact.is_new}
    has_positions: dict[str, bool] = {}
    for fact in facts:
        has = fact.stopped or fact.position is not None
        has_positions[fact.source.topic] = has_positions.get(fact.source.topic, True) and has
    return frozenset(
        topic for topic in listed if topic in known or has_positions.get(topic, False) or not is_selected(topic)
    )


def note_topics(flow: str, ledger: Ledger, known: Collection[str] | None, now: Collection[str]) -> None:
    """Store the topics if they have changed.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    if known is None or set(known) != set(now):
        ledger.save_known_topics(flow, now)
