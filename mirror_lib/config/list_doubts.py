"""Lists of names and regexes that read otherwise than they were meant: lost backslashes, commas in regexes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mirror_lib.topology import parse_list

#: The settings whose values are lists of names and regexes, without what stands before them.
_LISTS = frozenset({"topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude"})
#: What is left of `name\..*` once the file's own escape has been taken away.
_LOST = re.compile(r"(?<=[\w-])\.\.[*+]")
_CUT = re.compile(r"\{[0-9]+\Z")


def list_doubts(name: str, text: str) -> Iterator[tuple[str, str]]:
    """What is doubtful with the value of a setting, each with what to write instead.

    Args:
        name: the setting's, without what stands before it.
        text: the value after the file's own escapes.
    """
    if name not in _LISTS:
        return
    members = parse_list(text)
    for member in members:
        if _LOST.search(member):
            meant = _LOST.sub(lambda found: "\\\\." + found[0][1:], member)
            yield (
                f"{member} also matches other characters than a dot: a single backslash is an escape of the file and "
                "is taken away",
                f"write {meant} if a dot is meant",
            )
    for member, following in pairwise(members):
        if _CUT.search(member) and "}" in following:
            yield (
                f"a list is split at every comma, so {member} and {following} are two members",
                "write the regex without a comma, such as [0-9][0-9]? for [0-9]{1,2}",
            )
