"""Refuses a flow that would copy records back to the cluster on which they were produced, endlessly.

Names of the default policy contain the path, so cycles are visible (`FlowTopology.is_cycle`). Identity names and
renames hide it, and MM2 then copies in a loop; this check refuses the flow before anything is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import ClusterPair
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.topology import loop_advice, loops
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.loops import Loop
from mirror_lib.topology.names import FlowId

_LOOPS_NAMED = 3


def refuse_loops(config: MirrorConfig, flow: FlowConfig, topics: Iterable[str]) -> tuple[Loop, ...]:
    """Refuse a flow that is part of a loop.

    Args:
        config: the whole file: all enabled flows count.
        flow: the flow to run.
        topics: the source topics that it copies.

    Returns:
        Loops further downstream that the flow's records enter; the flows that close them are refused when they run.

    Raises:
        ConfigurationError: the flow closes a loop, or a flow names a class or a regex that cannot be used.
    """
    found = loops(config, flow.flow.source, topics)
    own = [loop for loop in found if _takes_part(flow.flow, loop)]
    if own:
        advice = loop_advice(config, own)
        action = f"{advice[0].upper()}{advice[1:]}."
        raise ConfigurationError(_text(own), where=Where(flow=str(flow.flow)), action=action)
    return found


def check_loops(config: MirrorConfig, flow: FlowConfig, topology: FlowTopology) -> None:
    """As `refuse_loops`, with the current topics of the flow's source.

    Raises:
        ConfigurationError: as `refuse_loops`.
        MirrorError: the source cannot be used.
    """
    if sum(each.enabled for each in config.flows) < 2:
        return
    with ClusterAdmin(Connection.from_settings(flow.clients.source_admin), flow.admin_timeout_ms / 1000) as admin:
        topics = [topic for topic in admin.list_topics() if topology.replicates(topic)]
    refuse_loops(config, flow, topics)


def refuse_own_copies(topology: FlowTopology, clusters: ClusterPair | None, remote: Mapping[str, str]) -> None:
    """Refuse a flow whose aliases name the same cluster if it selects the topics that it writes.

    Only the cluster ids show that two addresses belong to one cluster.

    Args:
        topology: of the flow.
        clusters: the ids of both; None if they are not known.
        remote: the target topic of each selected topic.

    Raises:
        ConfigurationError: the flow would copy its own copies, endlessly.
    """
    if clusters is None or clusters.source != clusters.target:
        return
    again = sorted(topic for topic, target in remote.items() if topology.replicates(target))
    if not again:
        return
    flow, named = topology.flow, ", ".join(f"{topic} to {remote[topic]}" for topic in again[:_LOOPS_NAMED])
    # `topics` does not select heartbeats, so it cannot exclude them.
    beats = any(map(topology.policy.is_heartbeats_topic, again)) and topology.heartbeats_replication_enabled
    raise ConfigurationError(
        f"aliases {flow.source} and {flow.target} point to the same cluster ({clusters.source}), and the flow would "
        f"copy its own copies again: {named}.",
        where=Where(flow=str(flow)),
        action="Correct bootstrap.servers. To copy topics within one cluster, list them in `topics` so that no target "
        f"topic matches{_WITHOUT_HEARTBEATS if beats else ''}.",
    )


@dataclass(frozen=True, slots=True)
class Namesakes:
    """Selected topics that are copies from a cluster which another file calls as this one calls the source."""

    topics: tuple[str, ...]
    #: The internal topic of the flow that writes them, on the source.
    internal: str


def copies_of_namesakes(topology: FlowTopology, listed: Collection[str], selected: Iterable[str]) -> Namesakes | None:
    """Find copies among the source's topics that the default policy's names do not distinguish from the source's own.

    Two data centres whose files give both the same aliases copy each other's copies, and the names grow with each
    round: an alias's own prefix is no cycle for the policy. A cluster that receives copies holds the internal topics of
    the flow that writes them.

    Args:
        topology: of the flow.
        listed: all topics of the source.
        selected: the source topics that it copies.
    """
    alias, policy = topology.flow.source, topology.policy
    internal = sorted({f"mm2-offsets.{alias}.internal", policy.checkpoints_topic(alias)} & set(listed))
    copies = sorted(topic for topic in selected if policy.topic_source(topic) == alias) if internal else ()
    return Namesakes(tuple(copies), internal[-1]) if copies else None


def refuse_namesakes(
    topology: FlowTopology, found: Namesakes, clusters: ClusterPair | None, written: Iterable[ClusterPair]
) -> None:
    """Refuse a flow whose namesake is its own target.

    Args:
        found: copies on the source.
        clusters: the ids of the flow's clusters; None if they are not known.
        written: the clusters in the positions that the other flow stores on the source.

    Raises:
        ConfigurationError: the flow would copy its target's topics back to it, endlessly.
    """
    if clusters is not None and any(each.source == clusters.target for each in written):
        raise ConfigurationError(
            f"{about_namesakes(topology, found)} That cluster is {topology.flow.target} of this file "
            f"({clusters.target}): the records would go round for ever.",
            where=Where(flow=str(topology.flow)),
            action="Give each cluster an alias of its own that is the same in all files, or exclude these topics in "
            "topics.exclude.",
        )


def namesake_notes(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: Callable[[], ClusterPair | None],
    listed: Collection[str],
    selected: Iterable[str],
) -> tuple[str, ...]:
    """Return sentences about copies on the source from a cluster with its alias.

    Raises:
        ConfigurationError: that cluster is the target.
        MirrorError: the positions of the other flow cannot be read.
    """
    found = copies_of_namesakes(topology, listed, selected)
    if found is None:
        return ()
    connection, alias = Connection.from_settings(flow.clients.data_consumer), flow.source_alias
    with PositionStore(connection, f"mm2-offsets.{alias}.internal", alias) as store:
        stored = store.read_all().positions.values()
    written = {each.position.clusters for each in stored if each.position.clusters is not None}
    refuse_namesakes(topology, found, clusters(), written)
    return (about_namesakes(topology, found),)


def about_namesakes(topology: FlowTopology, found: Namesakes) -> str:
    """A sentence about copies from a cluster with the source's alias."""
    named = ", ".join(found.topics[:_LOOPS_NAMED])
    more = f" and {len(found.topics) - _LOOPS_NAMED} more" if len(found.topics) > _LOOPS_NAMED else ""
    return (
        f"The source has {found.internal}: another flow copies to it from a cluster that its file calls "
        f"{topology.flow.source}, too, and this flow copies those copies again: {named}{more}."
    )


_WITHOUT_HEARTBEATS = ", and set heartbeats.replication.enabled = false, since heartbeats are copied regardless of it"


def _takes_part(flow: FlowId, loop: Loop) -> bool:
    steps = zip(loop.path, loop.path[1:], strict=False)
    return any(FlowId(here.cluster, there.cluster) == flow for here, there in steps)


def _text(found: Sequence[Loop]) -> str:
    named = "; ".join(str(loop) for loop in found[:_LOOPS_NAMED])
    more = f"; and {len(found) - _LOOPS_NAMED} more" if len(found) > _LOOPS_NAMED else ""
    return f"the enabled flows of the file would copy records in a loop: {named}{more}."
