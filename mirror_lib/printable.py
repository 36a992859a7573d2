"""Texts that others choose, such as group ids, principals and messages of brokers, made harmless where they are shown.

An escape sequence steers a terminal, a line break forges a line of a log, characters that turn the direction of writing
hide what is there, and PostgreSQL takes no text with a NUL.
"""

from __future__ import annotations

import logging
from copy import copy

#: What our own texts of several lines consist of.
LINES = "\n\t"
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    r"""The text with everything that is not printable written as an escape, such as `\x1b` or `\u202e`.

    Args:
        text: anything.
        keep: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escape(each) for each in text)


def _escape(character: str) -> str:
    return _SHORT.get(character) or character.encode("unicode_escape").decode()


class PrintableFormatter(logging.Formatter):
    """Formats what is logged without control characters; line breaks stay where no name brought them."""

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            # Other handlers get the record as it is.
            record = copy(record)
            record.args = tuple(printable(each) if isinstance(each, str) else each for each in record.args or ())
        return printable(super().format(record), LINES)
