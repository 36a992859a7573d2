"""Read the options of one SMT, predicate or converter as Kafka's `ConfigDef` does, and collect all problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from mirror_lib.features.transforms.smt.model import SettingProblem

#: Characters that `String.trim()` removes.
_BLANKS = "".join(map(chr, range(0x21)))
_Read = TypeVar("_Read")


def split_list(text: str) -> tuple[str, ...]:
    """Return members between commas without blanks around them; an empty text has none (`ConfigDef.Type.LIST`)."""
    trimmed = text.strip(_BLANKS)
    return tuple(member.strip() for member in trimmed.split(",")) if trimmed else ()


class Options:
    """The settings under one prefix. Problems are collected, and a harmless value replaces an invalid one."""

    def __init__(self, prefix: str, settings: Mapping[str, str], *, owner: str) -> None:
        """Nothing is read yet.

        Args:
            prefix: of all keys, including its dot.
            settings: all settings of the flow.
            owner: the class of the options, for messages.
        """
        self.prefix = prefix
        self.owner = owner
        self.problems: list[SettingProblem] = []
        self._given = {key.removeprefix(prefix): text for key, text in settings.items() if key.startswith(prefix)}
        self._read: set[str] = set()

    @property
    def has_failed(self) -> bool:
        """True if an option cannot be used."""
        return any(not problem.warning for problem in self.problems)

    def has(self, name: str) -> bool:
        """Return True if an option is set."""
        return name in self._given

    def refuse(self, name: str, message: str, action: str = "") -> None:
        """Note that an option cannot be used."""
        self.problems.append(SettingProblem(self.prefix + name, message, action))

    def warn(self, name: str, message: str, action: str = "") -> None:
        """Add a warning about an option."""
        self.problems.append(SettingProblem(self.prefix + name, message, action, warning=True))

    def text(self, name: str) -> str | None:
        """Return an option as written, without blanks around it; None if it is not set."""
        self._read.add(name)
        given = self._given.get(name)
        return None if given is None else given.strip(_BLANKS)

    def require(self, name: str, *, may_be_empty: bool = False) -> str:
        """Return an option that must be set."""
        text = self.text(name)
        if text is None:
            self.refuse(name, f"is missing, but {self.owner} needs it", f"set {self.prefix}{name}")
        elif not text and not may_be_empty:
            self.refuse(name, "is empty")
        return text or ""

    def non_empty(self, name: str) -> str | None:
        """Return an option that must not be empty if it is set."""
        text = self.text(name)
        if text == "":
            self.refuse(name, "is empty", "set a value, or remove it")
        return text

    def names(self, name: str, *, required: bool = True) -> tuple[str, ...]:
        """Return a list; empty only if it may be."""
        members = split_list(self.require(name) if required else self.text(name) or "")
        if "" in members:
            self.refuse(name, "has an empty element")
        return members

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false in any case of letters."""
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            self.refuse(name, f"must be true or false, not {text!r}")
        return text.lower() == "true"

    def choice(self, name: str, among: Iterable[str], *, default: str | None = None, any_case: bool = False) -> str:
        """Return one of several words; required without a default."""
        words = list(among)
        text = self.require(name) if default is None else self.text(name)
        if text is None:
            return default or words[0]
        for word in words:
            if text == word or (any_case and text.lower() == word.lower()):
                return word
        if text or default is not None:
            self.refuse(name, f"must be one of {', '.join(words)}, not {text!r}")
        return words[0]

    def parse(self, name: str, text: str, parse: Callable[[str], _Read], fallback: _Read) -> _Read:
        """Return a text parsed by a function; its `ValueError` is collected."""
        try:
            return parse(text)
        except ValueError as error:
            self.refuse(name, f"cannot be used: {error}")
            return fallback

    def note_unknown(self) -> None:
        """Warn of options that were not read, since Connect ignores them."""
        for name in sorted(self._given.keys() - self._read):
            self.warn(name, f"is not an option of {self.owner} and has no effect", "check its spelling")
