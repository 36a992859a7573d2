"""Valid values that are probably not as intended: lost backslashes, commas in regexes, times without a zone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mirror_lib.topology.java_types import parse_list

#: The settings whose values are lists of names and regexes, without prefixes.
PATTERN_LISTS = frozenset({"topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude"})
#: The rest of `name\..*` after the file's own escapes were removed.
_LOST = re.compile(r"(?<=[\w-])\.\.[*+]")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_CUT = re.compile(r"\{[0-9]+\Z")
_GROUPS = ("groups", "groups.exclude")
#: Outside of the classes of a regex.
_CLASSES = re.compile(r"\[[^\]]*\]")
_SPLIT = re.compile(r"\s*;\s*|\s+")
_NO_COMMA = re.compile(r"[;\s]")
_FIRST_STARTS = frozenset({"mirror.first.start", "mirror.first.start.topics"})
#: Dates with a time or without, and no zone behind them.
_NO_ZONE = re.compile(r"(?:\A|[\s=,])([0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:[T ][0-9:.]+)?)(?=\s*(?:,|\Z))")


def value_doubts(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield doubts about the value of a setting, each with what to write instead.

    Args:
        name: the setting's, without prefix.
        text: the value after the file's own escapes.
    """
    if name in PATTERN_LISTS:
        yield from _list_doubts(name, text)
    elif name in _FIRST_STARTS:
        for found in _NO_ZONE.finditer(text):
            zoned = f"{found[1]}Z" if re.search("[T ]", found[1]) else f"{found[1]}T00:00:00Z"
            yield f"{found[1]} has no time zone and is read as UTC", f"write {zoned}, or another zone such as +01:00"


def _list_doubts(name: str, text: str) -> Iterator[tuple[str, str]]:
    members = parse_list(text)
    # Quotes around the whole value are reported for every setting.
    quoted = [] if _QUOTED.fullmatch(text.strip()) else [member for member in members if _QUOTED.fullmatch(member)]
    for member in quoted:
        yield f"the quotes are part of {member}", "remove the quotes: lists have none"
    for member in members:
        if _LOST.search(member):
            meant = _LOST.sub(lambda found: "\\\\." + found[0][1:], member)
            yield (
                f"{member} also matches characters other than a dot: a single backslash is an escape in the file and "
                "is removed",
                f"write {meant} to match a dot",
            )
    for member, following in pairwise(members):
        if _CUT.search(member) and "}" in following:
            yield (
                f"a list is split at every comma, so {member} and {following} are two elements",
                "write the regex without a comma, such as [0-9][0-9]? for [0-9]{1,2}",
            )
    for member in members:
        if found := _NO_COMMA.search(_CLASSES.sub("", member)):
            what = "';'" if found[0] == ";" else "space"
            names = "it matches only names with" if name in _GROUPS else "no name has a"
            yield (
                f"a list is split at commas only, so {member} is one element, and {names} {what}",
                f"write {_SPLIT.sub(', ', member)}",
            )
