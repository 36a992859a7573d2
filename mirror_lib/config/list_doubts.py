"""Lists of names and regexes that are probably not as intended: lost backslashes, commas in regexes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mirror_lib.topology import parse_list

#: The settings whose values are lists of names and regexes, without prefixes.
_LISTS = frozenset({"topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude"})
#: The rest of `name\..*` after the file's own escapes were removed.
_LOST = re.compile(r"(?<=[\w-])\.\.[*+]")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_CUT = re.compile(r"\{[0-9]+\Z")


def list_doubts(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield doubts about the value of a setting, each with what to write instead.

    Args:
        name: the setting's, without prefix.
        text: the value after the file's own escapes.
    """
    if name not in _LISTS:
        return
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
