"""Refusing a flow that would copy records back to where they came from, for ever.

Names that the default policy makes carry their way, so cycles show in them (`FlowTopology.is_cycle`). Identity names
and renames do not, and MM2 copies in a circle then; here the flow is refused before anything is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mirror_lib.cluster import Connection
from mirror_lib.cluster.admin import ClusterAdmin
from mirror_lib.cluster.topics import ClusterPair
from mirror_lib.config import FlowConfig, MirrorConfig, loops
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.topology import FlowId, FlowTopology, Loop

_LOOPS_NAMED = 3


def refuse_loops(config: MirrorConfig, flow: FlowConfig, topics: Iterable[str]) -> tuple[Loop, ...]:
    """Refuse a flow that is part of a loop.

    Args:
        config: the whole file: all its enabled flows count.
        flow: the one that is to run.
        topics: of its source, those that it copies.

    Returns:
        Loops that the flow's records get into further on, by other flows, which are refused when those run.

    Raises:
        ConfigurationError: the flow closes a loop, or a flow names a class or a regex that cannot be used.
    """
    found = loops(config, flow.flow.source, topics)
    own = [loop for loop in found if _takes_part(flow.flow, loop)]
    if own:
        raise ConfigurationError(_text(own), where=Where(flow=str(flow.flow)), action=_ACTION)
    return found


def check_loops(config: MirrorConfig, flow: FlowConfig, topology: FlowTopology) -> None:
    """The same, with the topics that the flow's source has now.

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
    """Refuse a flow whose aliases name one cluster, where it would take the topics that it writes.

    Two addresses of a cluster look like two clusters; only the ids tell.

    Args:
        topology: of the flow.
        clusters: the ids of both; None where they are not known.
        remote: the target topic of each selected topic.

    Raises:
        ConfigurationError: the flow would copy its own copies, for ever.
    """
    if clusters is None or clusters.source != clusters.target:
        return
    again = sorted(topic for topic, target in remote.items() if topology.replicates(target))
    if not again:
        return
    flow, named = topology.flow, ", ".join(f"{topic} to {remote[topic]}" for topic in again[:_LOOPS_NAMED])
    raise ConfigurationError(
        f"aliases {flow.source} and {flow.target} name one cluster ({clusters.source}), and the flow would copy its "
        f"own copies again and again: {named}.",
        where=Where(flow=str(flow)),
        action="Correct bootstrap.servers. To copy topics within one cluster, name them in `topics` so that no target "
        "topic matches.",
    )


_ACTION = (
    "Let only one direction copy a topic: disable a flow, let their `topics` exclude each other, "
    "or use the default replication policy, whose names show where a topic came from."
)


def _takes_part(flow: FlowId, loop: Loop) -> bool:
    steps = zip(loop.path, loop.path[1:], strict=False)
    return any(FlowId(here.cluster, there.cluster) == flow for here, there in steps)


def _text(found: Sequence[Loop]) -> str:
    named = "; ".join(str(loop) for loop in found[:_LOOPS_NAMED])
    more = f"; and {len(found) - _LOOPS_NAMED} more" if len(found) > _LOOPS_NAMED else ""
    return f"with all enabled flows of the file, records would be copied in a circle: {named}{more}."
