"""Templates in arguments of tasks. Airflow renders every text of some arguments, with access to its variables and
connections, so a text from a configuration file must not be one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

_BEGINNINGS: Final = ("{{", "{%", "{#")


@dataclass(frozen=True, slots=True)
class Template:
    """A text that Airflow is to render; every other text is passed to `untemplated`."""

    text: str

    def __str__(self) -> str:
        return self.text


def untemplated(text: str) -> str:
    """Return a template that renders to the text; the text itself if it has none of Jinja's signs."""
    if not any(each in text for each in _BEGINNINGS):
        return text
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}"
