"""Compares the logs of both sides with the positions before a group's offset is committed.

An offset is translated by what was copied. It means nothing in a log that was restored from a snapshot since, even if
that has grown to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mirror_lib.cluster import Connection
from mirror_lib.config import FlowConfig
from mirror_lib.errors import MirrorError, Where
from mirror_lib.identity import MOST_BYTES, MOST_PARTITIONS, LogEnds, changed_logs
from mirror_lib.sync.groups.facts import GroupFacts
from mirror_lib.sync.groups.plan import GroupPlan
from mirror_lib.topology import TopicPartition


def with_changed_logs(flow: FlowConfig, facts: GroupFacts, plan: GroupPlan) -> GroupFacts:
    """The facts with the partitions of a plan that have another log now; the same facts if none has.

    All partitions are asked in which the plan changes something, and others as long as that is cheap.

    Raises:
        MirrorError: a cluster cannot be connected to.
    """
    clients = flow.clients
    asked = {source: ends for source, at in _asked(facts, plan) if (ends := _ends(facts, source, at)) is not None}
    changed: dict[TopicPartition, MirrorError] = changed_logs(
        Connection.from_settings(clients.data_consumer), Connection.from_settings(clients.data_producer), asked
    )
    if not changed:
        return facts
    name = str(flow.flow)
    located = {
        each: error.located(Where(flow=name, topic=each.topic, partition=each.partition))
        for each, error in changed.items()
    }
    return replace(facts, target_errors={**located, **facts.target_errors})


def _asked(facts: GroupFacts, plan: GroupPlan) -> Iterator[tuple[TopicPartition, TopicPartition]]:
    """Source partitions with their target partitions."""
    translated = [row for row in plan.rows if row.translated]
    due = {row.source: row.target for row in translated if row.emit or row.commit}
    yield from due.items()
    size = 0
    others = {row.source: row.target for row in translated if row.source not in due}
    for number, (source, target) in enumerate(others.items()):
        position = facts.positions.get(source)
        if position is not None:
            records = (position.last_record, position.target_record)
            size += sum(record.batch_bytes for record in records if record is not None)
        if number == MOST_PARTITIONS or size > MOST_BYTES:
            return
        yield source, target


def _ends(facts: GroupFacts, source: TopicPartition, target: TopicPartition) -> LogEnds | None:
    """What is known of a partition; None without a position, or if one of its logs is unknown."""
    position, target_end = facts.positions.get(source), facts.target_ends.get(source)
    start, end = facts.source_starts.get(source), facts.source_ends.get(source)
    if position is None or start is None or end is None or target_end is None:
        return None
    return LogEnds(position, target, start, end, target_end)
