"""Conflicts between the flows of a file: loops, and flows that write to one target topic.

A run rejects both, or stops with `target-not-empty`, if the topics exist. The file alone shows them for the topics that
it names, and for a sample topic of patterns such as `.*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mirror_lib.config.model import FlowConfig, MirrorConfig, Problem
from mirror_lib.config.topology import flow_topology, loop_advice, loops
from mirror_lib.topology.loops import Loop

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
#: Represents all topics that a pattern matches; messages show it as any topic.
_ANY, _ANY_SHOWN = "orders", "<topic>"


def meeting_problems(config: MirrorConfig) -> Iterator[Problem]:
    """Yield warnings about flows in conflict, each once.

    Raises:
        ConfigurationError: a flow names a class or a regex that cannot be used.
    """
    flows = config.enabled_flows
    named = {topic for flow in flows for topic in flow.topics if _NAME.fullmatch(topic)}
    names = sorted({_ANY, *named})
    for problem in (*_circles(config, names), *_fan_in(flows, names)):
        is_of_any = _ANY not in named and re.search(rf"\b{_ANY}\b", problem.message)
        message = re.sub(rf"\b{_ANY}\b", _ANY_SHOWN, problem.message)
        yield problem.model_copy(update={"message": message}) if is_of_any else problem


def _circles(config: MirrorConfig, names: list[str]) -> Iterator[Problem]:
    circles: dict[frozenset[object], Loop] = {}
    for source in sorted({flow.flow.source for flow in config.enabled_flows}):
        for loop in loops(config, source, names):
            circles.setdefault(frozenset(loop.path), loop)
    for loop in circles.values():
        yield Problem.warning(
            f"records would be copied in a loop: {loop}. Runs are refused if the topic exists",
            suggestion=loop_advice(config, [loop]),
        )


def _fan_in(flows: tuple[FlowConfig, ...], names: list[str]) -> Iterator[Problem]:
    writers: dict[tuple[str, str], list[str]] = {}
    for flow in flows:
        topology = flow_topology(flow)
        for name in names:
            if topology.replicates(name):
                writers.setdefault((flow.flow.target, topology.remote_topic(name)), []).append(f"{name} by {flow.flow}")
    for (cluster, topic), found in writers.items():
        if len({each.rpartition(" by ")[2] for each in found}) > 1:
            yield Problem.warning(
                f"topic {topic} on {cluster} would receive {' and '.join(found)}. The second flow stops with "
                "target-not-empty",
                suggestion="use the default replication policy, or rename topics of one flow (mirror.topics.rename)",
            )
