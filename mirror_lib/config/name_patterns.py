"""Which ACL patterns cover what a flow's filters select. Pure.

Kafka's ACLs know whole names, prefixes and everything, filters know regular expressions: what an ACL must cover is a
name where the regex is one, else the text that every match begins with, else everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mirror_lib.config.flow_topology import flow_topology
from mirror_lib.config.model import FlowConfig
from mirror_lib.topology.acls import WILDCARD, AclPattern
from mirror_lib.topology.filters import DefaultGroupFilter, DefaultTopicFilter
from mirror_lib.topology.handovers import NO_HANDOVERS
from mirror_lib.topology.selection import FlowTopology

_QUANTIFIERS = "*+?{"
_SPECIAL = "[](){}^$*+?|"
#: Any name will do that no policy treats specially.
_PROBE = "probe"


class NamePattern(NamedTuple):
    """The names that an ACL is for."""

    pattern: AclPattern
    name: str

    @property
    def is_name(self) -> bool:
        """Whether it is for exactly one name."""
        return self.pattern is AclPattern.LITERAL and self.name != WILDCARD

    def holds(self, other: NamePattern) -> bool:
        """Whether it is for all names that the other is for."""
        if self.pattern is AclPattern.PREFIXED:
            return other.name.startswith(self.name) and other != EVERYTHING
        return self in (EVERYTHING, other)


EVERYTHING = NamePattern(AclPattern.LITERAL, WILDCARD)


def literal(name: str) -> NamePattern:
    """Exactly this name."""
    return NamePattern(AclPattern.LITERAL, name)


def prefixed(head: str) -> NamePattern:
    """All names that begin so."""
    return NamePattern(AclPattern.PREFIXED, head) if head else EVERYTHING


def names_of(regex: str) -> tuple[NamePattern, ...]:
    """What covers the whole matches of a Java regex, one pattern for each alternative.

    A dot without a quantifier counts as a dot: people write topic names that have dots as they are.
    """
    return _united(map(_head, _alternatives(regex)))


def source_topics(flow: FlowConfig) -> tuple[NamePattern, ...]:
    """What a flow takes from its source, heartbeats too."""
    topology = _unrestricted(flow)
    return _united((*_selected(flow, topology), *_heartbeats(topology)))


def target_topics(flow: FlowConfig) -> tuple[NamePattern, ...]:
    """What a flow writes on its target."""
    topology = _unrestricted(flow)
    return _united(_remote(flow, topology))


def groups(flow: FlowConfig) -> tuple[NamePattern, ...]:
    """The consumer groups that a flow takes; they keep their names on the target."""
    # A filter of somebody's own may take anything.
    if not flow.group_filter_class.endswith(f".{DefaultGroupFilter.__name__}"):
        return (EVERYTHING,)
    return _united(each for regex in flow.groups for each in names_of(regex))


def named_topics(flow: FlowConfig) -> frozenset[str]:
    """The source topics that a flow's configuration calls by their names, as far as the flow takes them."""
    return frozenset(each.name for each in _selected(flow, _unrestricted(flow)) if each.is_name)


def named_groups(flow: FlowConfig) -> frozenset[str]:
    """The groups that a flow's configuration calls by their names."""
    return frozenset(each.name for each in groups(flow) if each.is_name)


def _unrestricted(flow: FlowConfig) -> FlowTopology:
    """Whatever cutovers have moved: rights are for the flow as its file has it."""
    return flow_topology(flow.model_copy(update={"handovers": NO_HANDOVERS, "way_back": False}))


def _selected(flow: FlowConfig, topology: FlowTopology) -> Iterator[NamePattern]:
    if not flow.topic_filter_class.endswith(f".{DefaultTopicFilter.__name__}"):
        yield EVERYTHING
        return
    for regex in flow.topics:
        for each in names_of(regex):
            if not each.is_name or topology.replicates(each.name):
                yield each


def _heartbeats(topology: FlowTopology) -> Iterator[NamePattern]:
    if topology.heartbeats_replication_enabled:
        yield literal(topology.policy.heartbeats_topic())


def _remote(flow: FlowConfig, topology: FlowTopology) -> Iterator[NamePattern]:
    many = False
    for each in (*_selected(flow, topology), *_heartbeats(topology)):
        if each.is_name:
            yield literal(topology.remote_topic(each.name))
        else:
            many = True
            yield _policy_names(topology, each)
    if many:
        yield from _renamed(flow, topology)


def _policy_names(topology: FlowTopology, source: NamePattern) -> NamePattern:
    """What the replication policy makes of all names of a pattern: one that puts something in front keeps prefixes."""
    probed = topology.policy.format_remote_topic(topology.flow.source, _PROBE)
    if not probed.endswith(_PROBE):
        return EVERYTHING
    front = probed.removesuffix(_PROBE)
    return prefixed(front if source == EVERYTHING else front + source.name)


def _renamed(flow: FlowConfig, topology: FlowTopology) -> Iterator[NamePattern]:
    for source, target in flow.rename.explicit.items():
        if topology.replicates(source):
            yield literal(target)
    if flow.rename.replacement is not None:
        text = flow.rename.replacement
        fixed = min((at for at in map(text.find, "$\\") if at >= 0), default=len(text))
        yield literal(text) if fixed == len(text) else prefixed(text[:fixed])


def _united(patterns: Iterable[NamePattern]) -> tuple[NamePattern, ...]:
    """In order, without those that others hold."""
    every = sorted(set(patterns))
    return tuple(each for each in every if not any(other != each and other.holds(each) for other in every))


def _alternatives(regex: str) -> list[str]:
    """The parts between the bars that stand outside of groups, classes and quotations."""
    parts, depth, in_class, at = [""], 0, False, 0
    while at < len(regex):
        taken = regex[at]
        if regex.startswith("\\Q", at):
            end = regex.find("\\E", at)
            taken = regex[at:] if end < 0 else regex[at : end + 2]
        elif taken == "\\":
            taken = regex[at : at + 2]
        elif in_class:
            in_class = taken != "]"
        elif taken == "[":
            in_class = True
        elif taken in "()":
            depth += 1 if taken == "(" else -1
        at += len(taken)
        if taken == "|" and not depth and not in_class:
            parts.append("")
        else:
            parts[-1] += taken
    return parts


def _head(regex: str) -> NamePattern:
    """What an expression without alternatives begins with, or the one name that it is."""
    regex = regex.removeprefix("^")
    head, at = "", 0
    while at < len(regex):
        taken, text = _unit(regex, at)
        following = regex[at + len(taken) : at + len(taken) + 1]
        if text is None:
            return literal(head) if regex[at:] == "$" else prefixed(head)
        if following and following in _QUANTIFIERS:
            # What may be repeated may be missing, except before a plus; a dot before a plus may be anything.
            return prefixed(head + text[:-1] + (text[-1:] if following == "+" and taken != "." else ""))
        head += text
        at += len(taken)
    return literal(head)


def _unit(regex: str, at: int) -> tuple[str, str | None]:
    """What stands at a place, and the text that it matches; None where that is not one text."""
    if regex.startswith("\\Q", at):
        end = regex.find("\\E", at)
        quoted = regex[at + 2 :] if end < 0 else regex[at + 2 : end]
        return (regex[at:] if end < 0 else regex[at : end + 2]), quoted
    if regex[at] == "\\":
        escaped = regex[at + 1 : at + 2]
        return regex[at : at + 2], None if escaped.isalnum() or not escaped else escaped
    return regex[at], None if regex[at] in _SPECIAL else regex[at]
