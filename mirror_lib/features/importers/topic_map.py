"""From `source.replication.topic.X = Y`, which articles recommend, to settings that have an effect. Pure.

No version of MM2 knows these names. The lines of a file with them are replaced by `mirror.topics.rename`, and all other
lines stay unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from mirror_lib.config.file.properties import Entry, PropertiesFile, read_properties
from mirror_lib.config.file.unknown_names import foreign
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME
from mirror_lib.config.settings.rename_keys import parse_rename_list
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.written_file import assignment, comment
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.java_types import parse_list
from mirror_lib.topology.rename import illegal_name

RENAME, MERGE, TOPICS = "mirror.topics.rename", "mirror.topics.merge.enabled", "topics"

_MAPPED = re.compile(r"(?P<prefix>(?:.+->.+?\.)?)source\.replication\.topic\.(?P<topic>.+)")
_COMMENT = re.compile(r"[ \t\f]*[#!]")
_INTERNAL_FACTOR = "replication.internal.topic.replication.factor"
_FACTORS = tuple(
    f"{name}.replication.factor"
    for name in ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", "offset.storage")
)
#: A line with its end, and a line whose setting continues in the next one.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_WITHOUT_EFFECT = "source.replication.group.id"
_AGAIN = "it is set again later, and that value is used"


@dataclass(frozen=True, slots=True)
class Translated:
    """A line of the file and the setting that it became."""

    name: str
    line: int
    value: str
    key: str


@dataclass(frozen=True, slots=True)
class Untranslated:
    """A line of the file that became a comment."""

    name: str
    line: int
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class TranslatedFile:
    """The new file.

    Attributes:
        text: ASCII, ready to be written; it holds the secrets of the old one.
        settings: the new ones.
        remarks: what the operator has to know before the first run.
    """

    text: str
    settings: Mapping[str, str]
    translated: tuple[Translated, ...]
    untranslated: tuple[Untranslated, ...]
    remarks: tuple[str, ...]


def translate_topic_map(data: bytes, *, source: str = "source", target: str = "target") -> TranslatedFile:
    """Replace the `source.replication.topic` settings of a file.

    An `A->B.` before a name is kept; without it the setting applies to all flows. A file without `clusters` is read as
    in these articles: `bootstrap.servers` and `source.cluster.*` are those of the source, `target.cluster.*` those of
    the target, and the flow between them is enabled.

    Args:
        data: the bytes of a properties file.
        source: the alias of the source if the file names no clusters.
        target: that of the target.

    Raises:
        ConfigurationError: the file cannot be read, or has no such settings.
    """
    file = read_properties(data, "the file")
    translation = _Translation(file, source, target)
    translation.run()
    if not any(_MAPPED.fullmatch(entry.key) for entry in file.entries):
        raise ConfigurationError(
            "the file has no source.replication.topic.X=Y.", action="Pass the file with these settings."
        )
    return TranslatedFile(
        text=translation.text(data.decode("iso-8859-1")),
        settings=translation.head
        | {key: value for keys in translation.instead.values() for key, value in keys.items()},
        translated=tuple(translation.translated),
        untranslated=tuple(translation.untranslated),
        remarks=tuple(translation.remarks),
    )


@dataclass(slots=True)
class _Map:
    """The renames of one flow, or of all."""

    pairs: dict[str, str] = field(default_factory=dict)
    #: Renames that the file had before.
    before: Mapping[str, str] = field(default_factory=dict)
    #: Renames of all flows.
    inherited: Mapping[str, str] = field(default_factory=dict)
    #: Line of the first of them.
    line: int = 0

    @property
    def all(self) -> Mapping[str, str]:
        """All renames that the new setting has to contain."""
        return {**self.inherited, **self.before, **self.pairs}


class _Translation:
    """One pass over a file. Replacements of lines are kept by line number."""

    def __init__(self, file: PropertiesFile, source: str, target: str) -> None:
        self.translated: list[Translated] = []
        self.untranslated: list[Untranslated] = []
        self.remarks: list[str] = []
        #: The settings that replace a line; empty if it is only removed.
        self.instead: dict[int, dict[str, str]] = {}
        #: The settings at the top of the new file.
        self.head: dict[str, str] = {}
        self._entries = file.entries
        self._effective = file.effective
        self._source = source
        self._target = target
        self._bare = "clusters" not in file.effective
        self._maps: dict[str, _Map] = {}
        if self._bare:
            self.head = {"clusters": f"{source}, {target}", f"{source}->{target}.enabled": "true"}

    def run(self) -> None:
        for entry in self._entries:
            mapped = _MAPPED.fullmatch(entry.key)
            if mapped is not None:
                self._map(entry, mapped["prefix"], mapped["topic"])
            elif entry.key == _INTERNAL_FACTOR:
                self._replace(entry, {name: entry.value for name in _FACTORS if name not in self._effective})
            elif entry.key == _WITHOUT_EFFECT:
                self._leave(entry, foreign(entry.key) or "it has no effect")
            elif self._bare and (key := self._key_of_bare(entry.key)) is not None:
                self._replace(entry, {key: entry.value})
        # A list of a flow replaces that of the top level, like all lists.
        for prefix, found in self._maps.items():
            if prefix and "" in self._maps:
                found.inherited = self._maps[""].pairs
        for prefix, found in self._maps.items():
            self._write(prefix, found)

    def _map(self, entry: Entry, prefix: str, topic: str) -> None:
        name = entry.value.strip()
        written = self._own_prefix(prefix)
        if self._effective[entry.key] is not entry:
            self._leave(entry, _AGAIN)
        elif self._bare and written != self._own_prefix(""):
            self._leave(entry, f"the file defines no clusters, and the flow is {self._source}->{self._target}")
        elif "," in name:
            self._leave(entry, "a topic is written to one topic of the target; use a separate flow for each")
        elif (why := illegal_name(topic) or illegal_name(name)) is not None:
            wrong = topic if illegal_name(topic) else name
            reason = f"{wrong!r} is not a valid topic name: {why}; for patterns use mirror.topics.rename.regex"
            self._leave(entry, reason)
        elif (before := self._before(written).get(topic, name)) != name:
            self._leave(entry, f"{written}{RENAME} already contains {topic}, for {before}")
        else:
            found = self._maps.setdefault(written, _Map(before=self._before(written), line=entry.line))
            found.pairs[topic] = name
            self.instead.setdefault(entry.line, {})
            self.translated.append(Translated(entry.key, entry.line, entry.value, f"{written}{RENAME}"))

    def _own_prefix(self, prefix: str) -> str:
        return f"{self._source}->{self._target}." if self._bare and not prefix else prefix

    def _before(self, prefix: str) -> Mapping[str, str]:
        """Return the renames that the file has already."""
        entry = self._effective.get(f"{prefix}{RENAME}")
        try:
            return parse_rename_list("" if entry is None else entry.value)
        except ValueError as error:
            raise ConfigurationError(
                f"{prefix}{RENAME} must be {error}.", action="Correct it, then translate the file."
            ) from error

    def _key_of_bare(self, name: str) -> str | None:
        """Return the key of a cluster's setting in a file without clusters."""
        if name in CLIENT_SET:
            return f"{self._source}.{name}"
        if name in MM2_BY_NAME:
            return None
        for side, alias in (("source", self._source), ("target", self._target)):
            rest = name.removeprefix(f"{side}.cluster.")
            if rest in CLIENT_SET and rest != name:
                return f"{alias}.{rest}"
        kind = name.split(".", 1)[0]
        of_kind = {"consumer": self._source, "producer": self._target}.get(kind)
        return f"{of_kind}.{name}" if of_kind is not None and "." in name else None

    def _write(self, prefix: str, found: _Map) -> None:
        """Write the settings that replace the lines of one map."""
        settings = {f"{prefix}{RENAME}": ", ".join(f"{topic}:{name}" for topic, name in found.all.items())}
        before = self._effective.get(f"{prefix}{RENAME}")
        if before is not None:
            self.instead[before.line] = {}
        merged = [name for name, times in Counter(found.all.values()).items() if times > 1]
        if merged and f"{prefix}{MERGE}" not in self._effective:
            settings[f"{prefix}{MERGE}"] = "true"
        if merged:
            self.remarks.append(
                f"Several topics are written to {_join(merged)}: they need the same number of partitions, and "
                "records keep their partition."
            )
        self._topics(prefix, found, settings)
        self.instead[found.line] = settings

    def _topics(self, prefix: str, found: _Map, settings: dict[str, str]) -> None:
        chosen = self._effective.get(f"{prefix}{TOPICS}") or self._effective.get(TOPICS)
        if chosen is None and not self._bare:
            # As before, all topics are copied.
            return
        if chosen is None:
            settings[f"{prefix}{TOPICS}"] = ", ".join(topic.replace(".", "\\.") for topic in found.pairs)
            self.remarks.append(f"Only the listed topics are copied, by {prefix}{TOPICS}; delete the line to copy all.")
            return
        try:
            pattern = compile_list(parse_list(chosen.value))
        except ValueError:
            # Reported by the check of the new file.
            return
        unmatched = [topic for topic in found.pairs if pattern is None or not pattern.fullmatch(topic)]
        if unmatched:
            self.remarks.append(f"{chosen.key} does not match {_join(unmatched)}: add the topics to copy.")

    def _replace(self, entry: Entry, settings: dict[str, str]) -> None:
        if self._effective[entry.key] is not entry:
            self._leave(entry, _AGAIN)
            return
        taken = [key for key in settings if key in self._effective]
        if taken or not settings:
            self._leave(entry, f"{taken[0] if taken else 'its replacement'} is set too")
            return
        self.instead[entry.line] = settings
        self.translated += (Translated(entry.key, entry.line, entry.value, key) for key in settings)

    def _leave(self, entry: Entry, reason: str) -> None:
        self.instead[entry.line] = {}
        self.untranslated.append(Untranslated(entry.key, entry.line, entry.value, reason))

    def text(self, old: str) -> str:
        """Return the new file."""
        return "".join(self._parts(old))

    def _parts(self, old: str) -> Iterator[str]:
        left = {each.line: each for each in self.untranslated}
        yield from (f"{assignment(key, value)}\n" for key, value in self.head.items())
        continues = False
        for number, line in enumerate((line for line in _LINE.findall(old) if line), 1):
            if number in self.instead:
                continues = True
                if number in left:
                    yield from _as_comment(left[number])
                for key, value in self.instead[number].items():
                    yield f"{assignment(key, value)}\n"
            elif not continues:
                yield _ascii(line)
            continues = continues and _CONTINUED.search(line.rstrip("\r\n")) is not None


def _as_comment(left: Untranslated) -> Iterable[str]:
    yield f"# {assignment(left.name, left.value)}\n"
    yield from (f"{line}\n" for line in comment(f"{left.reason}.", "    "))


def _ascii(line: str) -> str:
    """Return a line that is the same for Java, which reads ISO-8859-1, and for editors; most write comments in
    UTF-8.
    """
    if _COMMENT.match(line):
        with suppress(UnicodeDecodeError):
            line = line.encode("iso-8859-1").decode("utf-8")
    return "".join(character if character.isascii() else f"\\u{ord(character):04x}" for character in line)


def _join(names: Iterable[str]) -> str:
    return ", ".join(names)
