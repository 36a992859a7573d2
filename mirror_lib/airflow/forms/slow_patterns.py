"""Regular expressions that match for ever: found in a process of its own, which can be ended."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mirror_lib.topology import translate

#: A topic's name has 249 characters at most.
_LONGEST_NAME: Final = 249
#: Of a processor, so that a busy machine makes no difference.
_SECONDS: Final = 1
#: Characters that stand for a class, and one that no name has: what makes an expression try all ways is its end.
_USUAL, _END = "a0-", "!"
_RUN = re.compile(r"[A-Za-z0-9_-]+")
#: Only `re`, and what it takes to be told: it starts in a few hundredths of a second.
_MATCH = f"""\
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({_SECONDS}, {_SECONDS}))
pattern, names = json.load(sys.stdin)
pattern = re.compile(pattern, re.ASCII)
for name in names:
    pattern.fullmatch(name)
"""


@lru_cache(maxsize=256)
def takes_for_ever(pattern: str) -> bool:
    """Whether a Java regular expression may need more than some seconds for a single name of a topic.

    `(a+)+` tries all ways to divide a name, and no exception ends that: a match cannot be interrupted from outside.

    Raises:
        ValueError: as `java_regex.translate`.
    """
    if _RUN.fullmatch(pattern):
        return False
    given = json.dumps([translate(pattern), _names(pattern)])
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", _MATCH], input=given, text=True, check=False)
    # By a signal of the system.
    return ended.returncode < 0


def _names(pattern: str) -> Sequence[str]:
    """Names that a pattern nearly matches: what it is made of, again and again, and then its end is wrong."""
    parts = dict.fromkeys([*_USUAL, *_RUN.findall(pattern), *(char for char in pattern if _RUN.fullmatch(char))])
    return [part * (_LONGEST_NAME // len(part)) + _END for part in parts if len(part) <= _LONGEST_NAME]
