"""Makes texts from other systems, such as group ids, principals and messages of brokers, safe to display.

An escape sequence controls a terminal, a line break forges a log line, characters that change the writing direction
hide text, and PostgreSQL rejects a text with a NUL character. Airflow's page shows no log line with `::endgroup::` in
it, and folds up what follows one with `::group::`.
"""

from __future__ import annotations

import re

#: Control characters in the project's own multi-line texts.
LINES = "\n\t"
_CONTINUED = "\n  "
_NEXT_LINE = re.compile(r"\n(?!  )")
#: As a whole log line: what follows it is in no group of lines that Airflow folds up.
END_OF_GROUP = "::endgroup::"
_FOLDS = re.compile(r"::(?=(?:end)?group::)")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    r"""The text with every non-printable character written as an escape, such as `\x1b` or `\u202e`.

    The marks by which Airflow folds up log lines are escaped, too: `:\x3agroup::`.

    Args:
        text: anything.
        keep: characters that are not escaped.
    """
    if "group::" in text:
        text = _FOLDS.sub(r":\\x3a", text)
    return without_controls(text, keep)


def without_controls(text: str, keep: str = "") -> str:
    """As `printable`, without a change of marks: Airflow's own log lines have them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escape(each) for each in text)


def _escape(character: str) -> str:
    return _SHORT.get(character) or character.encode("unicode_escape").decode()


class Lines(str):
    """A text of this project with several lines: as an argument of a log message it keeps its line breaks and tabs.

    Its names must be printable already.
    """

    __slots__ = ()


def indented(text: str) -> str:
    """Return a text whose lines after the first begin with two spaces at least."""
    return _NEXT_LINE.sub(_CONTINUED, text)
