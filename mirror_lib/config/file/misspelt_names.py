"""Which name of a setting an unknown name was meant to be. Pure.

A typing error is a letter, the form of a separator, or the ending of a word. Other versions or products
may have names made of other words: MM2 ignores them, and a guess would be wrong.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_SEPARATOR = re.compile(r"[._-]+")
#: Letters that two words have in common at least, if they differ in their endings.
_STEM = 4
_ENDING = 3
#: In shorter words another letter makes another word.
_LONG_ENOUGH = 4
#: Words in common at least, if one of two names lacks a word.
_COMMON_WORDS = 3


@lru_cache(maxsize=4096)
def misspelt_name(name: str, known: frozenset[str]) -> str | None:
    """Return the known name that differs from a name by typing errors only; None without one, or with several that
    are equally close.
    """
    words = _words(name)
    index = _index(known)
    found = dict.fromkeys(index.joined.get("".join(words), ()), 1.0)
    for each, its_words in index.by_count.get(len(words), ()):
        if all(map(_is_same_word, words, its_words)) or _one_letter(name, each):
            found.setdefault(each, difflib.SequenceMatcher(None, each, name).ratio())
    found.pop(name, None)
    closest = [each for each, ratio in found.items() if ratio == max(found.values())]
    return closest[0] if len(closest) == 1 else None


@lru_cache(maxsize=4096)
def name_with_another_word(name: str, known: frozenset[str]) -> str | None:
    """Return the known name that has one word more or less than a name, and otherwise the same words in the same
    order; None without one, or with several.
    """
    words, index = _words(name), _index(known)
    found = [each for each, longer in index.by_count.get(len(words) + 1, ()) if _lacks_one(words, longer)]
    found += [each for each, shorter in index.by_count.get(len(words) - 1, ()) if _lacks_one(shorter, words)]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Index:
    """Known names by what is compared first: a file may have hundreds of unknown ones."""

    #: By their words without separators.
    joined: Mapping[str, Sequence[str]]
    #: By the number of their words.
    by_count: Mapping[int, Sequence[tuple[str, list[str]]]]


@lru_cache(maxsize=16)
def _index(known: frozenset[str]) -> _Index:
    joined: dict[str, list[str]] = {}
    by_count: dict[int, list[tuple[str, list[str]]]] = {}
    for each in sorted(known):
        words = _words(each)
        joined.setdefault("".join(words), []).append(each)
        by_count.setdefault(len(words), []).append((each, words))
    return _Index(joined, by_count)


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
    """Return True if a letter was inserted, omitted, replaced, or exchanged with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = len(_common_start(one, other))
    end = len(_common_start(one[start:][::-1], other[start:][::-1]))
    ours, theirs = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(ours), len(theirs)) < 2 or (len(ours) == 2 and ours == theirs[::-1])
