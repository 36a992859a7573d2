"""Partitions that the ledger says were copied, or copied further: the position topic was lost, or is an older one.

Kafka is the source of truth for how far a partition is copied, so nothing is copied from the ledger's position without
a decision. Without this rule such a partition would begin anew, or continue at an older position: its records would be
appended a second time (`mirror.target.existing=append`), or be passed over (`mirror.first.start=latest`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import PositionLostError, Where
from mirror_lib.identity.histories import LedgerState
from mirror_lib.identity.ledger_positions import LedgerPositions
from mirror_lib.ledger.offset_rows import KnownPosition
from mirror_lib.planning.model import PartitionFacts, PartitionProblem
from mirror_lib.topology.names import TopicPartition


def find_lost_positions(
    flow: FlowConfig, facts: Iterable[PartitionFacts], ledger: LedgerPositions | None, reset: Container[TopicPartition]
) -> tuple[PartitionProblem, ...]:
    """Return the partitions of which the ledger has a position with copied records, and Kafka none, or an older one.

    A position at the beginning counts if the target holds more than the ledger knows of: a killed run may have copied.

    Args:
        ledger: None if there is none yet.
        reset: partitions whose position was deleted on purpose: their next run is a first start.
    """
    if ledger is None:
        return ()
    doubtful = [each for each in facts if _is_restored(each) or _is_without(each, reset)]
    known = ((fact, ledger.rows.get(fact.source)) for fact in doubtful)
    lost = [(fact, row) for fact, row in known if row is not None and _may_be_copied(fact, row)]
    # What is left of a topic is deleted as a whole, so there is one way on for all its partitions.
    lacking = {_target_topic(fact) for fact, row in lost if _lacks_copies(fact, row)}
    sources: dict[str | None, set[str]] = {}
    for fact, _ in lost:
        if (topic := _target_topic(fact)) in lacking:
            sources.setdefault(topic, set()).add(fact.source.topic)
    return tuple(_problem(flow, fact, row, sources.get(_target_topic(fact), ())) for fact, row in lost)


def _may_be_copied(fact: PartitionFacts, row: KnownPosition) -> bool:
    return row.offset >= 0 or _held(fact) > (row.target_offset or 0)


def _target_topic(fact: PartitionFacts) -> str | None:
    return None if fact.target_now is None else fact.target_now.topic


def _held(fact: PartitionFacts) -> int:
    return 0 if fact.target_now is None else fact.target_now.log_end or 0


def _lacks_copies(fact: PartitionFacts, row: KnownPosition) -> bool:
    return fact.target_now is not None and _held(fact) < (row.target_offset or 0)


def _is_without(fact: PartitionFacts, reset: Container[TopicPartition]) -> bool:
    return fact.position is None and not fact.stopped and fact.source not in reset


def _is_restored(fact: PartitionFacts) -> bool:
    """True if the position is an older one, and the target has all that was copied since."""
    if fact.history.state is not LedgerState.AHEAD or fact.target_now is None or fact.copied_to is None:
        return False
    return (fact.target_now.log_end or 0) >= (fact.copied_to.log_end or 0)


def _problem(flow: FlowConfig, fact: PartitionFacts, row: KnownPosition, again: Iterable[str]) -> PartitionProblem:
    """The error of a lost position.

    Args:
        again: the source topics of its target topic if that lacks records that were copied.
    """
    where = Where(flow=str(flow.flow), topic=fact.source.topic, partition=fact.source.partition)
    held = "no position of it" if fact.position is None else f"its position at source offset {fact.position - 1}"
    stored = "" if row.updated_at is None else f" on {row.updated_at:%Y-%m-%d at %H:%M}Z"
    copied = f"copied up to source offset {row.offset}" if row.offset >= 0 else "begun, and nothing copied by then"
    action = (
        "Correct offset.storage.topic, or restore the topic. If that is impossible: "
        f"{where.position_set(row.offset + 1)} continues where the ledger says that the copy ended; compare with "
        "`mirror verify` afterwards."
    )
    if again:
        commands = ", ".join(
            f"`mirror position set --flow '{flow.flow}' --topic {topic} --to earliest`" for topic in sorted(again)
        )
        action = (
            f"{_target_topic(fact)} has fewer records than the ledger knows to be copied. If nothing can be "
            f"restored, copy all its partitions again: delete the topic, then {commands}."
        )
    error = PositionLostError(
        f"{flow.offset_storage_topic} has {held}, but the ledger has that of run {row.run_id}{stored}: "
        f"{copied}. The position topic was deleted or restored, or offset.storage.topic "
        "names another one.",
        where=where,
        action=action,
    )
    return PartitionProblem(fact.source, error)
