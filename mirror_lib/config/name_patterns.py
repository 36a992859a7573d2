"""ACL patterns that cover the selection of a flow's filters. Pure.

Kafka's ACLs have whole names, prefixes and everything; filters have regular expressions. An ACL covers a name if the
regex is one, else the prefix common to all matches, else everything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology, group_filter
from mirror_lib.topology.acls import WILDCARD, AclPattern
from mirror_lib.topology.filters import DefaultGroupFilter, DefaultTopicFilter
from mirror_lib.topology.flow_topology import Exclusion, FlowTopology
from mirror_lib.topology.handovers import UNRESTRICTED
from mirror_lib.topology.java_regex import with_dots

_QUANTIFIERS = "*+?{"
#: Most lists consist of these; a fast check.
_UNESCAPED_NAME = re.compile(r"[\w.-]+", re.ASCII)
_SPECIAL = "[](){}^$*+?|"
#: A name without special meaning to any policy, and one with special meaning to `IdentityReplicationPolicy`.
_PROBES = ("probe", "heartbeats")


class NamePattern(NamedTuple):
    """The names that an ACL is for."""

    pattern: AclPattern
    name: str

    @property
    def is_name(self) -> bool:
        """True if it is for exactly one name."""
        return self.pattern is AclPattern.LITERAL and self.name != WILDCARD

    def holds(self, other: NamePattern) -> bool:
        """Return True if it is for all names that the other is for."""
        if self.pattern is AclPattern.PREFIXED:
            return other.name.startswith(self.name) and other != EVERYTHING
        return self in (EVERYTHING, other)


EVERYTHING = NamePattern(AclPattern.LITERAL, WILDCARD)


def literal(name: str) -> NamePattern:
    """Return the pattern of exactly this name."""
    return NamePattern(AclPattern.LITERAL, name)


def prefix_pattern(head: str) -> NamePattern:
    """Return the pattern of all names with this prefix."""
    return NamePattern(AclPattern.PREFIXED, head) if head else EVERYTHING


def names_of(regex: str) -> tuple[NamePattern, ...]:
    """Return patterns that cover the whole matches of a Java regex, one for each alternative.

    A dot without a quantifier counts as a dot: topic names with dots are usually written unescaped.
    """
    # No topic or group has an empty name.
    return _unite(each for each in map(_head, _alternatives(regex)) if each.name)


def plain_names(regexes: Iterable[str]) -> frozenset[str]:
    """Return the names that regexes spell out, in which any metacharacter is escaped, dots too.

    Only these are certain to be names.
    """
    return frozenset(name for regex in regexes for name, plain in _names(regex) if plain)


def supposed_names(regexes: Iterable[str], listed: Collection[str]) -> frozenset[str]:
    """Return names with unescaped dots that regexes spell out, unless their dots match other characters.

    Args:
        listed: names on the cluster: if one of them matches, that one was meant.
    """
    dotted = {name for regex in regexes for name, plain in _names(regex) if not plain}
    matches = _DottedNames(listed)
    return frozenset(name for name in dotted if name not in matches)


def source_topics(flow: FlowConfig) -> tuple[NamePattern, ...]:
    """Return what a flow copies from its source, including heartbeats."""
    topology = _unrestricted_topology(flow)
    return _unite((*_selected_topics(flow, topology), *_heartbeats(topology)))


def target_topics(flow: FlowConfig) -> tuple[NamePattern, ...]:
    """Return what a flow writes on its target."""
    topology = _unrestricted_topology(flow)
    return _unite(_remote(flow, topology))


def groups(flow: FlowConfig) -> tuple[NamePattern, ...]:
    """Return the consumer groups that a flow selects; they keep their names on the target."""
    if not _is_default_group_filter(flow):
        return (EVERYTHING,)
    return _unite(each for regex in flow.groups for each in names_of(regex))


def named_topics(flow: FlowConfig) -> frozenset[str]:
    """Return the source topics that a flow's configuration certainly names, as far as the flow selects them."""
    if not _is_default_topic_filter(flow):
        return frozenset()
    return frozenset(filter(_unrestricted_topology(flow).replicates, plain_names(flow.topics)))


def excluded_names(flow: FlowConfig) -> dict[str, Exclusion]:
    """Return the topics that a flow's configuration names and that the flow does not select, with the reason."""
    if not _is_default_topic_filter(flow):
        return {}
    exclusion = _unrestricted_topology(flow).exclusion
    names = {name for regex in flow.topics for name, _ in _names(regex)}
    return {name: why for name in names if (why := exclusion(name)) is not None}


def excludes_by_name(flow: FlowConfig, topic: str) -> bool:
    """Return True if `topics.exclude` spells out the name of this topic: a pattern may match by mistake."""
    named = (name for regex in flow.topics_exclude for name, _ in _names(regex))
    return _is_default_topic_filter(flow) and topic in named


def supposed_topics(flow: FlowConfig, listed: Collection[str]) -> frozenset[str]:
    """Return the source topics that a flow's configuration seems to name, with unescaped dots."""
    if not _is_default_topic_filter(flow):
        return frozenset()
    return frozenset(filter(_unrestricted_topology(flow).replicates, supposed_names(flow.topics, listed)))


def named_groups(flow: FlowConfig) -> frozenset[str]:
    """Return the groups that a flow's configuration certainly names."""
    return plain_names(flow.groups) if _is_default_group_filter(flow) else frozenset()


def excluded_groups(flow: FlowConfig) -> frozenset[str]:
    """Return the groups that a flow's configuration names and that the flow does not select."""
    if not _is_default_group_filter(flow):
        return frozenset()
    takes = group_filter(flow).should_replicate_group
    return frozenset(name for regex in flow.groups for name, _ in _names(regex) if not takes(name))


def supposed_groups(flow: FlowConfig, listed: Collection[str]) -> frozenset[str]:
    """Return the groups that a flow's configuration seems to name, with unescaped dots."""
    return supposed_names(flow.groups, listed) if _is_default_group_filter(flow) else frozenset()


def _is_default_topic_filter(flow: FlowConfig) -> bool:
    """Return True for the default filter: a custom filter may select anything."""
    return flow.topic_filter_class.endswith(f".{DefaultTopicFilter.__name__}")


def _is_default_group_filter(flow: FlowConfig) -> bool:
    return flow.group_filter_class.endswith(f".{DefaultGroupFilter.__name__}")


def _unrestricted_topology(flow: FlowConfig) -> FlowTopology:
    """Return the topology regardless of cutovers: permissions are for the flow as its file has it."""
    return flow_topology(flow.model_copy(update={"handovers": UNRESTRICTED}))


def _selected_topics(flow: FlowConfig, topology: FlowTopology) -> Iterator[NamePattern]:
    if not _is_default_topic_filter(flow):
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
    for each in (*_selected_topics(flow, topology), *_heartbeats(topology)):
        if each.is_name:
            yield literal(topology.remote_topic(each.name))
        else:
            many = True
            yield from _policy_names(topology, each)
    if many:
        yield from _renamed_topics(flow, topology)


def _policy_names(topology: FlowTopology, source: NamePattern) -> Iterator[NamePattern]:
    """Yield what the replication policy makes of all names of a pattern: a policy that adds a prefix keeps prefixes."""
    for probe in _PROBES:
        probed = topology.policy.format_remote_topic(topology.source_alias, probe)
        front = probed.removesuffix(probe)
        if front == probed:
            yield EVERYTHING
        else:
            yield prefix_pattern(front if source == EVERYTHING else front + source.name)


def _renamed_topics(flow: FlowConfig, topology: FlowTopology) -> Iterator[NamePattern]:
    for source, target in flow.rename.explicit.items():
        if topology.replicates(source):
            yield literal(target)
    if flow.rename.replacement is not None:
        text = flow.rename.replacement
        fixed = min((at for at in map(text.find, "$\\") if at >= 0), default=len(text))
        yield literal(text) if fixed == len(text) else prefix_pattern(text[:fixed])


def _unite(patterns: Iterable[NamePattern]) -> tuple[NamePattern, ...]:
    """Return them in order, without those that others include."""
    every = set(patterns)
    if EVERYTHING in every:
        return (EVERYTHING,)
    heads = {each.name for each in every if each.pattern is AclPattern.PREFIXED}
    return tuple(sorted(each for each in every if not any(head in heads for head in _heads(each))))


def _heads(each: NamePattern) -> Iterator[str]:
    """Yield the prefixes that would include it."""
    longest = len(each.name) - (each.pattern is AclPattern.PREFIXED)
    return (each.name[:length] for length in range(1, longest + 1))


def _alternatives(regex: str) -> list[str]:
    """Return the parts between bars outside of groups, classes and quotations."""
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
    """Return the prefix of an expression without alternatives, or the one name that it is."""
    regex = regex.removeprefix("^")
    head, at = "", 0
    while at < len(regex):
        taken, text = _unit(regex, at)
        following = regex[at + len(taken) : at + len(taken) + 1]
        if text is None:
            return literal(head) if regex[at:] == "$" else prefix_pattern(head)
        if following and following in _QUANTIFIERS:
            # What may be repeated may be missing, except before a plus; a dot before a plus may be anything.
            return prefix_pattern(head + text[:-1] + (text[-1:] if following == "+" and taken != "." else ""))
        head += text
        at += len(taken)
    return literal(head)


def _names(regex: str) -> Iterator[tuple[str, bool]]:
    """Yield the names among the alternatives of a regex, each with whether its dots are certain to be dots."""
    if _UNESCAPED_NAME.fullmatch(regex):
        yield regex, "." not in regex
        return
    for each in _alternatives(regex):
        pattern = _head(each)
        if pattern.is_name and pattern.name:
            yield pattern.name, "." not in _units(each.removeprefix("^"))


def _units(regex: str) -> Iterator[str]:
    """Yield a regex unit by unit, as written."""
    at = 0
    while at < len(regex):
        taken, _ = _unit(regex, at)
        yield taken
        at += len(taken)


class _DottedNames:
    """Names of a cluster, looked up with dots that may match other characters.

    Names whose dots are at the same positions are looked up together, so that many names can be found among many.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._by_length: dict[int, list[str]] = {}
        for name in names:
            self._by_length.setdefault(len(name), []).append(name)
        self._by_places: dict[tuple[int, ...], frozenset[str]] = {}

    def __contains__(self, dotted: str) -> bool:
        dots = tuple(at for at, character in enumerate(dotted) if character == ".")
        form = (len(dotted), *dots)
        if form not in self._by_places:
            same_length = self._by_length.get(len(dotted), ())
            self._by_places[form] = frozenset(with_dots(name, dots) for name in same_length)
        return dotted in self._by_places[form]


def _unit(regex: str, at: int) -> tuple[str, str | None]:
    """Return the unit at a position, and the text that it matches; None if that is not one text."""
    if regex.startswith("\\Q", at):
        end = regex.find("\\E", at)
        quoted = regex[at + 2 :] if end < 0 else regex[at + 2 : end]
        return (regex[at:] if end < 0 else regex[at : end + 2]), quoted
    if regex[at] == "\\":
        escaped = regex[at + 1 : at + 2]
        return regex[at : at + 2], None if escaped.isalnum() or not escaped else escaped
    return regex[at], None if regex[at] in _SPECIAL else regex[at]
