"""Refuses a flow whose records another flow copies back, according to that flow's runs in the ledger.

`loops.flow` knows the flows of one file. Two files with one direction each look harmless, but with identity names or
renames both would copy each other's copies endlessly. The ledger has the clusters of each flow, and the target topic of
each copied topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from mirror_lib.cluster.topics.position_format import ClusterPair
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.identity.clusters import ledger_name
from mirror_lib.ledger.rows import CopiedTopic
from mirror_lib.ledger.store import Ledger

#: A flow that has copied a topic within this time is assumed to continue.
_STILL_COPIED = timedelta(days=7)
_LOOPS_NAMED = 3


def refuse_ledger_loops(
    flow: FlowConfig, ledger: Ledger | None, clusters: ClusterPair | None, remote: Mapping[str, str]
) -> None:
    """Refuse a flow that would copy what another flow copies back to its source.

    Args:
        ledger: None if there is none yet.
        clusters: the flow's clusters; None if their ids are not known.
        remote: the target topic of each selected topic.

    Raises:
        ConfigurationError: a topic would be copied in a loop.
        LedgerError: the ledger cannot be used.
    """
    # A failback flow selects only topics that a cutover has moved, which the other flow no longer copies.
    if ledger is None or clusters is None or flow.failback:
        return
    name, since = ledger_name(flow.flow), datetime.now(UTC) - _STILL_COPIED
    ended = {name, str(flow.flow.opposite)} if flow.opposite_ended else {name}
    opposite = [each for each in ledger.cluster_pairs.between(clusters.target, clusters.source) if each not in ended]
    found = [loop for each in opposite for loop in loops_with(remote, ledger.copied_topics(each, since))]
    if not found:
        return
    moved = ledger.handovers.moved_topics((name, *opposite))
    found = [each for each in found if each.topic not in moved and each.target_topic not in moved]
    if found:
        raise ConfigurationError(_text(flow, found, remote), where=Where(flow=name), action=_action(flow, found))


def loops_with(remote: Mapping[str, str], copied_back: Iterable[CopiedTopic]) -> list[CopiedTopic]:
    """Topics that another flow copies from this one's target to its source so that this one copies them again.

    Either under the same name, or under a name that grows with every round.

    Args:
        remote: the target topic of each topic that this flow selects.
        copied_back: all topics of the other flow.
    """
    back = list(copied_back)
    taken, written = {each.topic for each in back}, set(remote.values())
    return [
        each
        for each in back
        if remote.get(each.target_topic) == each.topic
        or (each.topic in written and each.target_topic in remote and remote[each.target_topic] in taken)
    ]


def _action(flow: FlowConfig, found: list[CopiedTopic]) -> str:
    opposite = str(flow.flow.opposite)
    if all(each.flow == opposite for each in found):
        ended = f"write `{opposite}.enabled = false` into this file"
    else:
        ended = "wait until a week has passed since then, or use a separate ledger for this flow (mirror.ledger.url)"
    return (
        "Let only one direction copy a topic: make the `topics` of both flows disjoint, or use the default "
        f"replication policy, whose names show where a topic came from. If the other flow has ended, {ended}."
    )


def _text(flow: FlowConfig, found: list[CopiedTopic], remote: Mapping[str, str]) -> str:
    source, target = flow.flow.source, flow.flow.target
    named = "; ".join(
        f"flow {each.flow} has copied {each.topic} to {each.target_topic} (last at {each.last:%Y-%m-%d %H:%M}Z), and "
        f"this flow copies that topic to {remote[each.target_topic]}"
        for each in found[:_LOOPS_NAMED]
    )
    more = f"; and {len(found) - _LOOPS_NAMED} more" if len(found) > _LOOPS_NAMED else ""
    return f"records would be copied in a loop between {source} and {target}: {named}{more}."
