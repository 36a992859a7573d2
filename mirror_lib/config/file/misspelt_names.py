"""Which name of a setting an unknown name was meant to be. Pure.

A typing error is a letter, the form of a separator, or the ending of a word. Names made of other words are names that
other versions or products may have: MM2 ignores them, and a guess would be wrong.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_SEPARATOR = re.compile(r"[._-]+")
#: Letters that two words have in common at least, if they differ in their endings.
_STEM = 4
_ENDING = 3
#: In shorter words another letter makes another word.
_LONG_ENOUGH = 4
#: Words in common at least, if one of two names lacks a word.
_COMMON_WORDS = 3


def misspelt_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs from a name by typing errors only; None without one, or with several that
    are equally close.
    """
    found = [each for each in known if _is_misspelling(name, each)]
    likeness = [difflib.SequenceMatcher(None, each, name).ratio() for each in found]
    closest = [each for each, ratio in zip(found, likeness, strict=True) if ratio == max(likeness)]
    return closest[0] if len(closest) == 1 else None


def name_with_another_word(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that has one word more or less than a name, and otherwise the same words in the same
    order; None without one, or with several.
    """
    words = _words(name)
    found = [each for each in known if _lacks_one(words, _words(each)) or _lacks_one(_words(each), words)]
    return found[0] if len(found) == 1 else None


def _is_misspelling(name: str, known: str) -> bool:
    if name == known:
        return False
    ours, theirs = _words(name), _words(known)
    if "".join(ours) == "".join(theirs):
        return True
    if len(ours) == len(theirs) and all(map(_is_same_word, ours, theirs)):
        return True
    return _one_letter(name, known)


def _is_same_word(one: str, other: str) -> bool:
    if one == other:
        return True
    if max(len(one), len(other)) >= _LONG_ENOUGH and _one_letter(one, other):
        return True
    stem = len(_common_start(one, other))
    return stem >= _STEM and max(len(one), len(other)) - stem <= _ENDING


def _lacks_one(shorter: list[str], longer: list[str]) -> bool:
    if len(shorter) != len(longer) - 1 or len(shorter) < _COMMON_WORDS:
        return False
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))


def _words(name: str) -> list[str]:
    return _SEPARATOR.split(name.lower())


def _common_start(one: str, other: str) -> str:
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    return one[:at]


def _one_letter(one: str, other: str) -> bool:
    """Return True if a letter was inserted, left out, replaced, or exchanged with the next."""
    start = len(_common_start(one, other))
    end = len(_common_start(one[start:][::-1], other[start:][::-1]))
    ours, theirs = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(ours), len(theirs)) < 2 or (len(ours) == 2 and ours == theirs[::-1])
