"""Groups and transactional ids that a cutover would split. Pure.

A consumer reads all of its topics on one cluster, and a transaction is limited to one cluster. If only some topics of a
group move, the group starts on the target at its `auto.offset.reset` for the others, or stays with the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.counted import counted
from mirror_lib.features.cutover.gates import begin_anew
from mirror_lib.features.cutover.model import Gate
from mirror_lib.topology.java_regex import compile_list

_NAMED = 3
#: `__consumer_offsets` takes part in transactions that commit a group's offsets; it moves with the group.
_INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class Belonging:
    """Users of the source's topics, as far as the topics of the scope are concerned."""

    #: Topics that each group has committed offsets on, or that its members are assigned.
    read: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Topics that each transactional id has written to.
    written: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Groups that match the flow's filter and the cutover scope.
    moving: frozenset[str] = frozenset()
    #: Topics that do not stay on the source: they move, have moved, or are copied from the target.
    gone: frozenset[str] = frozenset()
    #: Topics that members of each group are assigned, and in which it has no committed offset: it has some elsewhere.
    uncommitted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Groups with members that have committed nothing yet, such as those that commit when they stop.
    unplaced: frozenset[str] = frozenset()
    #: Sentences about what could not be read.
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """One group or transactional id of which only a part moves."""

    #: `group` or `transactional id`.
    kind: str
    name: str
    #: Its topics that move, and those that stay on the source.
    moves: tuple[str, ...]
    stays: tuple[str, ...]
    #: Its offsets are not moved, regardless of its topics.
    excluded: bool = False

    def __str__(self) -> str:
        if self.excluded:
            return f"group {self.name} reads {_shorten(self.moves)}, but does not move"
        does = "reads" if self.kind == "group" else "writes in transactions to"
        return f"{self.kind} {self.name} {does} {_shorten(self.moves)}, and also {_shorten(self.stays)}, which stays"


def find_splits(use: Belonging, topics: Collection[str]) -> tuple[Split, ...]:
    """Return the groups and transactional ids that moving some source topics would split, by kind and name."""
    return (
        *_splits("group", use.read, use, topics, use.moving),
        *_splits("transactional id", use.written, use, topics, use.written.keys()),
    )


def _splits(
    kind: str,
    used: Mapping[str, frozenset[str]],
    use: Belonging,
    topics: Collection[str],
    moving: Collection[str],
) -> Iterable[Split]:
    for name in sorted(used):
        moves = tuple(sorted(used[name] & set(topics)))
        stays = tuple(
            sorted(each for each in used[name] if each not in topics and each not in use.gone and each[:2] != _INTERNAL)
        )
        excluded = name not in moving
        if moves and (stays or excluded):
            yield Split(kind, name, moves, stays, excluded=excluded)


def nothing_split(use: Belonging, topics: Collection[str], may_split: Sequence[str]) -> Gate:
    """Gate: nothing is split except what an operator has named.

    Args:
        may_split: Java regexes for whole names of groups and transactional ids.
    """
    allowed = compile_list(tuple(may_split)) if may_split else None
    found = find_splits(use, topics)
    accepted = [each for each in found if allowed is not None and allowed.fullmatch(each.name)]
    left = [each for each in found if each not in accepted]
    users = sum(bool(each & set(topics)) for each in (*use.read.values(), *use.written.values()))
    uses = counted(users, "group or transactional id uses", "groups and transactional ids use")
    what = f"{uses} the topics; none would be split."
    if left:
        more = f"; and {len(left) - _NAMED:,} more" if len(left) > _NAMED else ""
        what = f"{len(left):,} would be split: {'; '.join(map(str, left[:_NAMED]))}{more}."
    elif accepted:
        named = "; ".join(map(str, accepted[:_NAMED]))
        what = f"{counted(len(accepted), 'is split', 'are split')}, allowed by may_split: {named}."
    unknown = f" Unknown: {'; '.join(use.unknown)}." if use.unknown else ""
    return Gate(
        "not split",
        not left,
        what + unknown,
        "Include these groups in the flow (`groups`, `groups.exclude`), or "
        f"{begin_anew('all their topics, or with `--may-split` for these groups and ids')}.",
    )


def every_topic_has_an_offset(use: Belonging, topics: Collection[str], may_reset: Sequence[str]) -> Gate:
    """Gate: each moving group has an offset in each topic that its members read, as far as it has members now.

    Without any offset of the group, nothing says later that it reads the topic.

    Args:
        may_reset: Java regexes for whole names of groups whose `auto.offset.reset` may decide.
    """
    allowed = compile_list(tuple(may_reset)) if may_reset else None
    found = {name: tuple(sorted(use.uncommitted[name] & set(topics))) for name in sorted(use.uncommitted)}
    found = {name: each for name, each in found.items() if each and name in use.moving}
    left = [name for name in found if allowed is None or not allowed.fullmatch(name)]
    what = "the groups that have members now have offsets in all topics that these read."
    if found:
        named = left or list(found)
        more = f"; and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        places = "; ".join(f"group {name}, which reads {_shorten(found[name])}" for name in named[:_NAMED])
        accepted = "" if left else ", accepted by may_reset"
        what = f"{counted(len(named), 'group')} without any offset in a topic{accepted}: {places}{more}."
    if unplaced := sorted(each for each in use.unplaced & use.moving if use.read[each] & set(topics)):
        does = "has members and has" if len(unplaced) == 1 else "have members and have"
        what = f"{what} {_shorten(unplaced)} {does} committed nothing yet: only what they commit is translated."
    return Gate(
        "uncommitted topics",
        not left,
        what,
        "On the target their consumers start there at auto.offset.reset: latest skips what is written before they "
        "join. Let them commit, or commit for them while they have no members (kafka-consumer-groups.sh "
        f"--reset-offsets), or {begin_anew('`--may-reset` for groups whose auto.offset.reset is right')}.",
    )


def _shorten(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
