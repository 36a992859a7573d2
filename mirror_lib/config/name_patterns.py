"""Which ACL patterns cover what a flow's filters select. Pure.

Kafka's ACLs know whole names, prefixes and everything, filters know regular expressions: what an ACL must cover is a
name where the regex is one, else the text that every match begins with, else everything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.topology import (
    UNRESTRICTED,
    WILDCARD,
    AclPattern,
    DefaultGroupFilter,
    DefaultTopicFilter,
    Exclusion,
    FlowTopology,
    with_dots,
)

_QUANTIFIERS = "*+?{"
#: What most lists consist of, found out at once.
_UNESCAPED_NAME = re.compile(r"[\w.-]+", re.ASCII)
_SPECIAL = "[](){}^$*+?|"
#: Any name that no policy treats specially, and one of those that `IdentityReplicationPolicy` does.
_PROBES = ("probe", "heartbeats")


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
    # Nothing has an empty name.
    return _united(each for each in map(_head, _alternatives(regex)) if each.name)


def plain_names(regexes: Iterable[str]) -> frozenset[str]:
    """The names that regexes give as they are, in which any metacharacter is escaped, dots too.

    Of these alone it is certain that a name is meant.
    """
    return frozenset(name for regex in regexes for name, plain in _names(regex) if plain)


def supposed_names(regexes: Iterable[str], listed: Collection[str]) -> frozenset[str]:
    """The names with dots that regexes give as they are, as far as the dots stand for no other character.

    Args:
        listed: what the cluster shows: where any of it matches, that is what was meant.
    """
    dotted = {name for regex in regexes for name, plain in _names(regex) if not plain}
    matches = _DottedNames(listed)
    return frozenset(name for name in dotted if name not in matches)


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
    if not _is_default_group_filter(flow):
        return (EVERYTHING,)
    return _united(each for regex in flow.groups for each in names_of(regex))


def named_topics(flow: FlowConfig) -> frozenset[str]:
    """The source topics that a flow's configuration calls by their names for certain, as far as the flow takes them."""
    if not _is_default_topic_filter(flow):
        return frozenset()
    return frozenset(filter(_unrestricted(flow).replicates, plain_names(flow.topics)))


def excluded_names(flow: FlowConfig) -> dict[str, Exclusion]:
    """The topics that a flow's configuration calls by their names and that the flow does not take, with the reason."""
    if not _is_default_topic_filter(flow):
        return {}
    exclusion = _unrestricted(flow).exclusion
    names = {name for regex in flow.topics for name, _ in _names(regex)}
    return {name: why for name in names if (why := exclusion(name)) is not None}


def supposed_topics(flow: FlowConfig, listed: Collection[str]) -> frozenset[str]:
    """The source topics that a flow's configuration seems to call by their names, with dots that are not escaped."""
    if not _is_default_topic_filter(flow):
        return frozenset()
    return frozenset(filter(_unrestricted(flow).replicates, supposed_names(flow.topics, listed)))


def named_groups(flow: FlowConfig) -> frozenset[str]:
    """The groups that a flow's configuration calls by their names for certain."""
    return plain_names(flow.groups) if _is_default_group_filter(flow) else frozenset()


def supposed_groups(flow: FlowConfig, listed: Collection[str]) -> frozenset[str]:
    """The groups that a flow's configuration seems to call by their names, with dots that are not escaped."""
    return supposed_names(flow.groups, listed) if _is_default_group_filter(flow) else frozenset()


def _is_default_topic_filter(flow: FlowConfig) -> bool:
    """A filter of somebody's own may take anything."""
    return flow.topic_filter_class.endswith(f".{DefaultTopicFilter.__name__}")


def _is_default_group_filter(flow: FlowConfig) -> bool:
    return flow.group_filter_class.endswith(f".{DefaultGroupFilter.__name__}")


def _unrestricted(flow: FlowConfig) -> FlowTopology:
    """Whatever cutovers have moved: rights are for the flow as its file has it."""
    return flow_topology(flow.model_copy(update={"handovers": UNRESTRICTED}))


def _selected(flow: FlowConfig, topology: FlowTopology) -> Iterator[NamePattern]:
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
    for each in (*_selected(flow, topology), *_heartbeats(topology)):
        if each.is_name:
            yield literal(topology.remote_topic(each.name))
        else:
            many = True
            yield from _policy_names(topology, each)
    if many:
        yield from _renamed(flow, topology)


def _policy_names(topology: FlowTopology, source: NamePattern) -> Iterator[NamePattern]:
    """What the replication policy makes of all names of a pattern: one that puts something in front keeps prefixes."""
    for probe in _PROBES:
        probed = topology.policy.format_remote_topic(topology.source_alias, probe)
        front = probed.removesuffix(probe)
        if front == probed:
            yield EVERYTHING
        else:
            yield prefixed(front if source == EVERYTHING else front + source.name)


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
    every = set(patterns)
    if EVERYTHING in every:
        return (EVERYTHING,)
    heads = {each.name for each in every if each.pattern is AclPattern.PREFIXED}
    return tuple(sorted(each for each in every if not any(head in heads for head in _heads(each))))


def _heads(each: NamePattern) -> Iterator[str]:
    """The prefixes of which one would hold it."""
    longest = len(each.name) - (each.pattern is AclPattern.PREFIXED)
    return (each.name[:length] for length in range(1, longest + 1))


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


def _names(regex: str) -> Iterator[tuple[str, bool]]:
    """The names among the alternatives of a regex, each with whether its dots are certain to be dots."""
    if _UNESCAPED_NAME.fullmatch(regex):
        yield regex, "." not in regex
        return
    for each in _alternatives(regex):
        pattern = _head(each)
        if pattern.is_name and pattern.name:
            yield pattern.name, "." not in _taken(each.removeprefix("^"))


def _taken(regex: str) -> Iterator[str]:
    """A regex unit by unit, as it is written."""
    at = 0
    while at < len(regex):
        taken, _ = _unit(regex, at)
        yield taken
        at += len(taken)


class _DottedNames:
    """Names of a cluster, to be found also by dots that stand for other characters.

    Names whose dots are at the same places are looked up together: many names may be looked for among many.
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
    """What stands at a place, and the text that it matches; None where that is not one text."""
    if regex.startswith("\\Q", at):
        end = regex.find("\\E", at)
        quoted = regex[at + 2 :] if end < 0 else regex[at + 2 : end]
        return (regex[at:] if end < 0 else regex[at : end + 2]), quoted
    if regex[at] == "\\":
        escaped = regex[at + 1 : at + 2]
        return regex[at : at + 2], None if escaped.isalnum() or not escaped else escaped
    return regex[at], None if regex[at] in _SPECIAL else regex[at]
