"""Makes texts from other systems, such as group ids, principals and messages of brokers, safe to display.

An escape sequence controls a terminal, a line break forges a log line, characters that change the writing direction
hide text, and PostgreSQL rejects a text with a NUL character.
"""

from __future__ import annotations

import logging
from copy import copy

#: Control characters in the project's own multi-line texts.
LINES = "\n\t"
_CONTINUED = "\n  "
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    r"""The text with every non-printable character written as an escape, such as `\x1b` or `\u202e`.

    Args:
        text: anything.
        keep: characters that are not escaped.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escape(each) for each in text)


def _escape(character: str) -> str:
    return _SHORT.get(character) or character.encode("unicode_escape").decode()


class PrintableFormatter(logging.Formatter):
    """Formats log records without control characters; line breaks stay unless a name contained them.

    Lines after the first are indented, so that none of them looks like a record of its own.
    """

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            # Other handlers get the original record.
            record = copy(record)
            record.args = tuple(printable(each) if isinstance(each, str) else each for each in record.args or ())
        return printable(super().format(record), LINES).replace("\n", _CONTINUED)
