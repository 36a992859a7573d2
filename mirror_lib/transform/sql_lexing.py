"""Texts that sqlglot and Spark split into the same words.

Spark must not see code where sqlglot sees a comment or a string: what is checked would not be what runs. Spark's rules
are those of `SqlBaseLexer.g4`; where the two differ (for Spark only, a carriage return ends a comment and a backslash
at its end continues it), the text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mirror_lib.transform.sql_text import Word

#: Blanks, `-- comment` and `/* comment */`. A comment of a line ends in no backslash, which continues it for Spark; one
#: in brackets holds no other, and is no hint.
_BETWEEN = re.compile(
    r"(?:[ \t\n]|\r\n|--(?:[^\r\n]*[^\r\n\\])?(?:\r?\n|\Z)|/\*(?!\+)(?:[^*/\r]|\r\n|\*(?!/)|/(?!\*))*\*/)*"
)
_STRING = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | [rR](?:'[^']*'|"[^"]*") | [xX](?:'[0-9a-fA-F]*'|"[0-9a-fA-F]*")""",
    re.DOTALL | re.VERBOSE,
)
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`", re.DOTALL)


def unlike_in_spark(text: str, words: Iterable[Word]) -> tuple[int, int] | None:
    """Return start and end of the first part that Spark may split otherwise; None when there is none."""
    end = 0
    for word in words:
        if word.start < end:
            # sqlglot makes several tokens of `1L`.
            continue
        if _BETWEEN.fullmatch(text, end, word.start) is None:
            return end, word.start
        shown = text[word.start : word.end]
        if word.is_string and _STRING.fullmatch(shown) is None:
            return word.start, word.end
        if not word.is_string and ("`" in shown or "'" in shown or '"' in shown) and not _QUOTED_NAME.fullmatch(shown):
            return word.start, word.end
        end = word.end
    return None if _BETWEEN.fullmatch(text, end) else (end, len(text))
