"""Regular expressions with catastrophic backtracking: found in a separate process, which can be killed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mirror_lib.topology import translate

#: Maximum length of a topic's name.
_LONGEST_NAME: Final = 249
#: CPU time, so that the load of the machine does not matter.
_SECONDS: Final = 1
#: Characters that represent a class, and one that no name has: a mismatch at the end makes an expression backtrack.
_USUAL, _END = "a0-", "!"
_RUN = re.compile(r"[A-Za-z0-9_-]+")
#: Imports only `re` and what it needs to read its input: it starts in a few hundredths of a second.
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
    """Return True if a Java regular expression may need more than some seconds for a single topic name.

    `(a+)+` tries all ways to divide a name, and a match cannot be interrupted by an exception.

    Raises:
        ValueError: as `java_regex.translate`.
    """
    if _RUN.fullmatch(pattern):
        return False
    given = json.dumps([translate(pattern), _names(pattern)])
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", _MATCH], input=given, text=True, check=False)
    # Killed by a signal of the system.
    return ended.returncode < 0


def _names(pattern: str) -> Sequence[str]:
    """Return names that a pattern nearly matches: its parts repeated, with a wrong end."""
    parts = dict.fromkeys([*_USUAL, *_RUN.findall(pattern), *(char for char in pattern if _RUN.fullmatch(char))])
    return [part * (_LONGEST_NAME // len(part)) + _END for part in parts if len(part) <= _LONGEST_NAME]
