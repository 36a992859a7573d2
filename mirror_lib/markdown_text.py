"""Texts from other systems in the Markdown that Airflow shows: a name must not become a link, an image or a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mirror_lib.printable import printable

#: Characters that Markdown gives no meaning within a line, and those of our own sentences.
_PLAIN = re.compile(r"[\w .,:;()'\"/%+=#>?$→✔✘{}-]*")
#: Airflow's Markdown makes links of these although they are not marked as such, also if they are escaped (GFM's
#: autolinks): only code prevents it.
_LINK = re.compile(r"://|www\.|@", re.IGNORECASE)
_BACKTICKS = re.compile("`+")
_PIPE = re.compile(r"(\\*)\|")


def markdown_text(text: str) -> str:
    """Return a text as Markdown that shows it: as it is if nothing in it has a meaning, otherwise as code.

    The result is one line, also for a cell of a table.
    """
    shown = printable(" ".join(text.split()))
    return shown if _PLAIN.fullmatch(shown) and not is_linked(shown) else markdown_code(shown)


def is_linked(text: str) -> bool:
    """Return True if Airflow's Markdown may make a link of a part of a text that has no signs of Markdown."""
    return _LINK.search(text) is not None


def markdown_block(lines: Sequence[str], language: str = "") -> str:
    """Return lines as a block of code that none of them ends: a line break within one is an escape."""
    shown = [printable(line) for line in lines]
    fence = "`" * max(3, *(1 + len(found) for line in shown for found in _BACKTICKS.findall(line)), 0)
    return "\n".join([f"{fence}{language}", *shown, fence])


def markdown_code(text: str) -> str:
    """Return a text as code that does not end before the text does, also in a cell of a table."""
    shown = printable(" ".join(text.split()))
    fence = "`" * (1 + max((len(each) for each in _BACKTICKS.findall(shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    # A table reads a pair of backslashes as one, also in code.
    cell = _PIPE.sub(lambda found: found[1] * 2 + r"\|", shown)
    return f"{fence}{space}{cell}{space}{fence}"
