"""The file written by an import of MirrorMaker 1's settings: its sections, its comments, its escapes. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

CONSUMER, PRODUCER, COMMAND = "consumer.properties", "producer.properties", "command line"

_WIDTH = 118
_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_CONTROL = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
_PRINTABLE = range(0x20, 0x7F)
#: A word that needs no quoting in a shell.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:,@%+=-]+")


@dataclass(frozen=True, slots=True)
class Placed:
    """A setting of MirrorMaker 1 and the line that it became."""

    #: The file, or the command line.
    origin: str
    name: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A setting of MirrorMaker 1 that has no effect here."""

    origin: str
    name: str
    value: str
    reason: str


def written_file(
    source: str,
    target: str,
    placed: Sequence[Placed],
    listed: Sequence[Listed],
    remarks: Sequence[str],
    *,
    group: str | None,
    servers: str,
) -> str:
    """Return the text of the file, in ASCII.

    Args:
        placed: becomes settings.
        listed: becomes comments with reasons.
        remarks: what to settle before the first run; they are at the top.
        group: the consumer group with MirrorMaker 1's progress.
        servers: the source's brokers, for the commands that read that progress.
    """
    flow = f"{source}->{target}"
    resets = any(each.key == f"{source}.consumer.auto.offset.reset" for each in placed)
    parts = (
        _head(flow, remarks),
        [f"clusters = {source}, {target}", ""],
        section("Connections", _connections(source, target, placed)),
        section("The flow", _flow(flow, placed)),
        section("As MirrorMaker 1 had it", _as_before(flow, target, placed)),
        section("Where topics begin", _beginning(source, resets)),
        section("How to go on where MirrorMaker 1 stopped", _positions(flow, group, servers)),
        section("What has no effect here", without_effect(listed)),
    )
    return "\n".join(line.rstrip() if line.startswith("#") else line for part in parts for line in part)


def setting(key: str, value: str) -> str:
    """Return one assignment that `java.util.Properties` reads back unchanged."""
    return f"{_escaped(key, ' =:#!')} = {_value(value)}"


def _value(text: str) -> str:
    escaped = _escaped(text, "")
    blanks = len(escaped) - len(escaped.lstrip(" "))
    return "\\ " * blanks + escaped[blanks:]


def _escaped(text: str, special: str) -> str:
    return "".join(_escaped_character(char, special) for char in text)


def _escaped_character(char: str, special: str) -> str:
    if char in _CONTROL:
        return _CONTROL[char]
    if char in special:
        return f"\\{char}"
    if ord(char) in _PRINTABLE:
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def comment(text: str, indent: str = "") -> Iterator[str]:
    """Yield the lines of a comment."""
    plain = _escaped(text, "").replace("\\\\", "\\")
    for line in textwrap.wrap(plain, _WIDTH - 2 - len(indent), break_long_words=False, break_on_hyphens=False):
        yield f"# {indent}{line}"


def section(title: str, lines: Iterable[str]) -> list[str]:
    head = f"# --- {_escaped(title, '')} "
    return [head + "-" * (_WIDTH - len(head)), *lines, ""]


def _head(flow: str, remarks: Sequence[str]) -> list[str]:
    lines = [
        *comment(
            f"Made by `mirror config import` from the settings of MirrorMaker 1, for the flow {flow}. The format is "
            "MirrorMaker 2's. It may hold passwords: keep it readable for nobody else."
        ),
        "#",
        "#   mirror config check FILE",
        f"#   mirror config show FILE --flow '{flow}'",
    ]
    if remarks:
        lines += ["#", "# TO BE SETTLED BEFORE THE FIRST RUN:"]
        for remark in remarks:
            first, *more = list(comment(remark, "  "))
            lines += [f"# - {first[4:]}", *more]
    return [*lines, ""]


def _connections(source: str, target: str, placed: Sequence[Placed]) -> Iterator[str]:
    providers = [each for each in placed if each.key.startswith("config.providers")]
    yield from (setting(each.key, each.value) for each in providers)
    for alias, origin in ((source, CONSUMER), (target, PRODUCER)):
        yield f"# {alias}: what {origin} said."
        own = (each for each in placed if each.key.startswith(f"{alias}.") and each not in providers)
        yield from (setting(each.key, each.value) for each in own if each.origin == origin)


def _flow(flow: str, placed: Sequence[Placed]) -> Iterator[str]:
    yield f"{flow}.enabled = true"
    for each in placed:
        if each.key == f"{flow}.topics":
            yield from comment(
                "The regex of --include. What takes more topics than before copies them from their beginning."
            )
            yield setting(each.key, each.value)
    yield from comment(
        "MirrorMaker 1 left out Kafka's own topics only. Names that begin with two underscores or a dot are never "
        "copied."
    )
    yield setting(f"{flow}.topics.exclude", r"mm2.*\.internal, __.*")
    yield from comment(
        "MirrorMaker 1 ran all the time. This flow runs every five minutes; without the line, by hand only."
    )
    yield f"{flow}.mirror.schedule = 5m"
    yield from comment("--num.streams of one process; add those of the others. A partition is never split.")
    yield from (setting(each.key, each.value) for each in placed if each.key == "tasks.max")


def _as_before(flow: str, target: str, placed: Sequence[Placed]) -> Iterator[str]:
    yield from comment(
        "Topics keep their names. Never replicate the same topics in both directions like this. Names that end with "
        f"`heartbeats` are the exception; write {flow}.mirror.topics.rename = heartbeats:heartbeats for such a topic."
    )
    yield f"replication.policy.class = {_IDENTITY}"
    yield from comment(
        "MirrorMaker 1 needed no rights on the source but to read, and changed no settings of topics on the target. "
        "Take a line away to have what it switches off; offset-syncs and checkpoints go together."
    )
    for name in (
        "emit.heartbeats.enabled",
        "heartbeats.replication.enabled",
        "emit.offset-syncs.enabled",
        "emit.checkpoints.enabled",
        "sync.topic.configs.enabled",
        "sync.topic.acls.enabled",
    ):
        yield f"{name} = false"
    yield from comment(
        "New topics on the target were made by its brokers, by their defaults. Here they get the source's partitions "
        "and settings; -1 leaves the replication factor to the brokers."
    )
    yield "replication.factor = -1"
    yield f"{target}.offset.storage.replication.factor = -1"
    flush = f"{target}.offset.flush.interval.ms"
    for each in placed:
        if each.key == flush:
            yield "# --offset.commit.interval.ms"
            yield setting(each.key, each.value)


def _beginning(source: str, resets: bool) -> Iterator[str]:
    if resets:
        yield from comment(
            f"{source}.consumer.auto.offset.reset above counts where a partition has no position yet, as it did in "
            "MirrorMaker 1."
        )
        return
    yield from comment(
        "MirrorMaker 1 began a partition without committed offset at its end, for auto.offset.reset was not set, and "
        "left out what was written before it looked. Here it begins at the beginning, so that nothing is left out. "
        "Write latest for the old way."
    )
    yield f"{source}.consumer.auto.offset.reset = earliest"


def _positions(flow: str, group: str | None, servers: str) -> Iterator[str]:
    yield from comment(
        "A partition that MirrorMaker 1 has copied already is refused by the first run (target-not-empty), for nothing "
        "says how far it came. That is what the following is for; docs/migration.md explains it."
    )
    yield from comment("1. Stop all its processes by SIGTERM, and wait until they have ended: then they commit.", "  ")
    yield f"#   2. mirror topics apply --config FILE --flow '{flow}'"
    yield "#   3. What it committed becomes the positions, partition by partition:"
    if group is None:
        yield from comment("its group is not known (group.id): put its name for GROUP.", "       ")
    shown = _shell_word(group or "GROUP")
    where = _shell_word(servers)
    yield f"#        kafka-consumer-groups.sh --bootstrap-server {where} \\"
    yield f"#            --command-config consumer.properties --describe --group {shown} > committed.txt"
    # The name of a group may contain blanks, that of a topic cannot.
    first = len((group or "GROUP").split()) + 1
    topic, partition, offset = (f"${first + column}" for column in range(3))
    numbers = f"{partition} ~ /^[0-9]+$/ && {offset} ~ /^[0-9]+$/"
    yield f"#        awk '{numbers} {{print {topic}, {partition}, {offset}}}' committed.txt |"
    yield "#        while read -r topic partition offset; do"
    yield f"#            mirror position set --config FILE --flow '{flow}' \\"
    yield '#                --topic "$topic" --partition "$partition" --to "$offset" --yes \\'
    yield "#                --note 'as MirrorMaker 1 committed' < /dev/null"
    yield "#        done"
    yield f"#   4. mirror plan --config FILE --flow '{flow}' shows where each partition would go on."


def _shell_word(text: str) -> str:
    escaped = _escaped(text, "")
    return escaped if _PLAIN_WORD.fullmatch(escaped) else "'" + escaped.replace("'", "'\\''") + "'"


def without_effect(listed: Sequence[Listed]) -> Iterator[str]:
    if not listed:
        yield "# Nothing: every setting has its place above."
    for origin in dict.fromkeys(each.origin for each in listed):
        yield from comment(f"{origin}:")
        for each in listed:
            if each.origin == origin:
                yield f"#   {setting(each.name, each.value)}"
                yield from comment(f"{each.reason}.", "      ")
