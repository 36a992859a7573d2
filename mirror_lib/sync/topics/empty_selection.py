"""Report a flow whose lists select no topic: usually a wrong character in a regex. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mirror_lib.config.model import FlowConfig
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.handovers import NO_HANDOVERS

_ALL = ((), (".*",))


def about_empty_selection(flow: FlowConfig, topology: FlowTopology, topics: Iterable[str]) -> Iterator[str]:
    """Yield a sentence if the flow's `topics` and `topics.exclude` select no topic of the source.

    Nothing is reported of lists that name no topic, of flows whose topics a cutover may have moved, and if a command is
    limited to some topics.

    Args:
        topics: the source topics that the flow copies, heartbeats included.
    """
    if flow.topics in _ALL or flow.handovers != NO_HANDOVERS or flow.flow.work or topology.limits:
        return
    if not any(map(topology.topic_filter.should_replicate_topic, topics)):
        yield (
            f"`topics` of flow {flow.flow} selects no topic of cluster {flow.flow.source} that its user may describe, "
            "so only heartbeats are copied: check the list and its quotes and backslashes with `mirror config show`."
        )
