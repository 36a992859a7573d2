"""Compares the logs of both sides with the positions before a group's offset is committed.

An offset is translated by what was copied. It means nothing in a log that was restored from a snapshot since, even if
that has grown to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import MirrorError, Where
from mirror_lib.identity.last_records import MOST_BYTES, MOST_PARTITIONS
from mirror_lib.identity.log_looks import LogEnds, changed_logs
from mirror_lib.sync.groups.facts import GroupFacts
from mirror_lib.sync.groups.model import GroupPlan
from mirror_lib.topology.names import TopicPartition

#: Bytes of last batches, of both sides, of partitions in which a scheduled step changes something.
MOST_DUE_BYTES = 4 * MOST_BYTES


@dataclass(frozen=True, slots=True)
class LookScope:
    """Which logs a step compares: by default all in which it changes something, and others as long as that is cheap."""

    #: A run that has ended just before: the logs that it copied are known, and its plan has compared idle ones.
    run_id: str | None = None
    #: The number of this step, if it may leave partitions to later ones (`MOST_DUE_BYTES`).
    turn: Callable[[], int] | None = None


@dataclass(frozen=True, slots=True)
class LookChoice:
    """The logs that a step compares."""

    #: Target partition and the position to compare, by source partition.
    now: Mapping[TopicPartition, LogEnds] = field(default_factory=dict)
    #: Source partitions that are left to later steps: until then nothing changes there.
    later: frozenset[TopicPartition] = frozenset()


def choose_logs(facts: GroupFacts, plan: GroupPlan, scope: LookScope) -> LookChoice:
    """Choose the partitions whose last copied records a step compares. Pure, but for the number of the step."""
    known = {row.source: ends for row in plan.rows if row.translated and (ends := _ends(facts, row.source, row.target))}
    due = {row.source for row in plan.rows if row.translated and (row.emit or row.commit)}
    copied = {each for each in due & known.keys() if _is_copied_by(known[each], scope.run_id)}
    parts = _parts({each: known[each] for each in sorted(due & known.keys() - copied)})
    chosen = due & known.keys()
    later: frozenset[TopicPartition] = frozenset()
    if scope.turn is not None and len(parts) > 1:
        chosen = copied | set(parts[scope.turn() % len(parts)])
        later = frozenset(due & known.keys() - chosen)
    elif scope.run_id is None:
        chosen |= _cheap({each: ends for each, ends in known.items() if each not in due})
    now = {each: _without_records(known[each]) if each in copied else known[each] for each in sorted(chosen)}
    return LookChoice(now, later)


def with_changed_logs(flow: FlowConfig, facts: GroupFacts, chosen: LookChoice) -> GroupFacts:
    """The facts with the partitions that have another log now; the same facts if none has.

    Raises:
        MirrorError: a cluster cannot be connected to.
    """
    clients = flow.clients
    changed: dict[TopicPartition, MirrorError] = changed_logs(
        Connection.from_settings(clients.data_consumer), Connection.from_settings(clients.data_producer), chosen.now
    )
    if not changed:
        return facts
    name = str(flow.flow)
    located = {
        each: error.located(Where(flow=name, topic=each.topic, partition=each.partition))
        for each, error in changed.items()
    }
    return replace(facts, target_errors={**located, **facts.target_errors})


def _is_copied_by(ends: LogEnds, run_id: str | None) -> bool:
    """True if a run has just read and written these logs, and they end where it stopped or later."""
    position = ends.position
    if run_id is None or position.run_id != run_id or position.target_offset is None:
        return False
    return ends.source_end > position.offset and ends.target_end >= position.target_offset


def _without_records(ends: LogEnds) -> LogEnds:
    """What is compared without a fetch: ends and leader epochs."""
    return ends._replace(position=replace(ends.position, last_record=None, target_record=None))


def _parts(due: Mapping[TopicPartition, LogEnds]) -> list[list[TopicPartition]]:
    found: list[list[TopicPartition]] = []
    size = 0
    for each, ends in due.items():
        cost = _cost(ends)
        if not found or size + cost > MOST_DUE_BYTES:
            found.append([])
            size = 0
        found[-1].append(each)
        size += cost
    return found


def _cheap(others: Mapping[TopicPartition, LogEnds]) -> set[TopicPartition]:
    found: set[TopicPartition] = set()
    size = 0
    for each, ends in others.items():
        size += _cost(ends)
        if len(found) == MOST_PARTITIONS or size > MOST_BYTES:
            break
        found.add(each)
    return found


def _cost(ends: LogEnds) -> int:
    records = (ends.position.last_record, ends.position.target_record)
    return sum(record.batch_bytes for record in records if record is not None)


def _ends(facts: GroupFacts, source: TopicPartition, target: TopicPartition) -> LogEnds | None:
    """What is known of a partition; None without a position, or if one of its logs is unknown."""
    position, target_end = facts.positions.get(source), facts.target_ends.get(source)
    start, end = facts.source_starts.get(source), facts.source_ends.get(source)
    if position is None or start is None or end is None or target_end is None:
        return None
    return LogEnds(position, target, start, end, target_end)
