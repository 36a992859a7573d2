"""Names that are ambiguous under MirrorMaker 2's naming rules: what a file must not configure. Pure.

`flow_conflicts` warns of loops that need topics which may not exist; here the naming rules themselves are the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mirror_lib.config.file.derive import FlowSettings
from mirror_lib.config.model import FlowConfig, Problem
from mirror_lib.config.topology import flow_topology
from mirror_lib.topology.loops import find_loops
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import IDENTITY_CLASS, SEPARATOR, SOURCE_ALIAS

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
#: Represents all topics that a pattern matches.
_ANY = "orders"
#: Members of a loop that are named.
_SHOWN = 4


def unclear_names(flows: Sequence[FlowConfig], settings: Mapping[FlowId, FlowSettings]) -> Iterator[Problem]:
    """Yield errors about flows whose topics or positions are ambiguous.

    Args:
        flows: the typed flows of the file.
        settings: of the same flows, for line numbers.

    Raises:
        ConfigurationError: a flow names a class or a regex that cannot be used.
    """
    enabled = [flow for flow in flows if flow.enabled]
    yield from _circles(enabled, settings)
    yield from _shared_positions(enabled, settings)


def _circles(flows: Sequence[FlowConfig], settings: Mapping[FlowId, FlowSettings]) -> Iterator[Problem]:
    without = {flow.flow for flow in flows if not flow.replication_policy_separator}
    if len(without) < 2:
        return
    names = sorted({_ANY, *(topic for flow in flows for topic in flow.topics if _NAME.fullmatch(topic))})
    topologies = {flow.flow: flow_topology(flow) for flow in flows if flow.flow in without}
    sources = {flow.source: names for flow in without}
    for loop in find_loops(list(topologies.values()), sources):
        found = [name for name in topologies if name.source == loop.path[0].cluster]
        setting = settings[found[0]].connector.get(SEPARATOR)
        shown = " -> ".join(map(str, loop.path[:_SHOWN])) + (" -> and so on" if len(loop.path) > _SHOWN else "")
        yield Problem.error(
            "records would be copied in a loop, since names without a separator do not contain the source "
            f"alias: {shown}",
            setting,
            "delete replication.policy.separator, or enable one direction only with "
            f"replication.policy.class = {IDENTITY_CLASS}",
        )
        return


def _shared_positions(flows: Sequence[FlowConfig], settings: Mapping[FlowId, FlowSettings]) -> Iterator[Problem]:
    """Yield errors about two flows to one target that store their positions under the same keys of one topic."""
    seen: dict[tuple[str, str, str], FlowId] = {}
    for flow in flows:
        place = (flow.flow.target, flow.offset_storage_topic, flow.source_alias)
        first = seen.setdefault(place, flow.flow)
        if first == flow.flow:
            continue
        setting = settings[flow.flow].connector.get(SOURCE_ALIAS)
        yield Problem.error(
            f"flows {first} and {flow.flow} store their positions in {flow.offset_storage_topic} on "
            f"{flow.flow.target} under the same source alias {flow.source_alias!r}, so each flow would continue "
            "at the other's positions",
            setting,
            "delete offset.storage.topic, so that each flow has its own topic, or delete source.cluster.alias",
        )
