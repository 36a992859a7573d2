"""Parses `sasl.jaas.config` as Java does (Kafka's `JaasConfig` with `java.io.StreamTokenizer`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_FLAGS = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})

_TOKEN = re.compile(
    r"""
      (?P<blank>[\x00-\x20]+ | //[^\r\n]* | /\*.*?(?:\*/|\Z) | /[^\r\n]*)
    | (?P<quoted>"(?:[^"\\\r\n]|\\[^\r\n])*" | '(?:[^'\\\r\n]|\\[^\r\n])*')
    | (?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+))
    | (?P<word>[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$.\x80-\U0010ffff-]*)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module with its options; option values may be secrets."""

    login_module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def module_name(self) -> str:
        """The login module's class name without its package."""
        return self.login_module.rpartition(".")[2]


def parse_jaas(text: str) -> JaasEntry:
    """Parse `Module flag option="value" ...;`.

    Raises:
        ValueError: the text is not exactly one entry; the message never contains parts of it, since wrong quoting
            makes secrets look like names.
    """
    tokens = [(kind, token) for kind, token in _tokens(text) if kind != "blank"]
    entry, rest = _entry(tokens)
    if rest:
        raise ValueError("there must be exactly one login module, and nothing after its closing semicolon")
    return entry


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "symbol", match.group()
        yield (kind, _ESCAPE.sub(_unescape, token[1:-1])) if kind == "quoted" else (kind, token)


def _unescape(match: re.Match[str]) -> str:
    escaped = match.group(1)
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _CONTROLS.get(escaped, escaped)


def _entry(tokens: list[tuple[str, str]]) -> tuple[JaasEntry, list[tuple[str, str]]]:
    if not tokens or tokens[0][0] not in ("word", "quoted"):
        raise ValueError("token 1 must be the class name of a login module")
    module = tokens[0][1]
    if len(tokens) < 2 or tokens[1][1].upper() not in _FLAGS:
        raise ValueError("token 2, after the login module, must be `required` (or requisite, sufficient, optional)")
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != ("symbol", ";"):
        key = tokens[position][1]
        if tokens[position][0] not in ("word", "quoted"):
            raise ValueError(f"token {position + 1} must be the name of an option, or the semicolon at the end")
        if tokens[position + 1 : position + 2] != [("symbol", "=")] or position + 2 >= len(tokens):
            raise ValueError(f"after the name of an option, token {position + 1}, there must be `=` and a value")
        kind, value = tokens[position + 2]
        if kind not in ("word", "quoted"):
            raise ValueError(f"the value of an option, token {position + 3}, must be in double quotes")
        options[key] = value
        position += 3
    if position == len(tokens):
        raise ValueError("it must end with a semicolon")
    return JaasEntry(module, tokens[1][1].lower(), options), tokens[position + 1 :]
