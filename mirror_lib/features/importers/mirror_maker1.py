"""From MirrorMaker 1's two client files and its command line to one file of this project. Pure; no I/O.

MirrorMaker 1 (`kafka-mirror-maker.sh`, `kafka.tools.MirrorMaker`, removed in Kafka 4.0) kept topic names, let the
producer choose partitions, and committed its progress to a consumer group on the source. Every input setting is in the
output: under the alias of a cluster, or in a comment with the reason why it has no effect here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mirror_lib.config.file.keys import ARROW
from mirror_lib.config.file.properties import PropertiesFile, read_properties
from mirror_lib.config.security.cloud_classes import MECHANISMS
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.config.settings.values import REQUEST_SIZE
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.mirror_maker1_reasons import OPTION_REASONS, reason
from mirror_lib.features.importers.written_file import COMMAND, CONSUMER, PRODUCER, Listed, Placed, written_file
from mirror_lib.topology.java_regex import compile_java
from mirror_lib.topology.java_types import ValueType, parse_value

__all__ = ["Imported", "Listed", "MirrorMaker1", "Placed", "all_topics_but", "import_mirror_maker_1", "topic_regex"]

_PROVIDERS = "config.providers"
#: Client settings beyond the connection that have an effect here.
APPLIED = {
    "consumer": frozenset({"client.id", "request.timeout.ms", "isolation.level", "client.rack"}),
    "producer": frozenset({"client.id", "request.timeout.ms", REQUEST_SIZE}),
    "admin": frozenset({"client.id", "request.timeout.ms"}),
}
_RESETS = ("earliest", "latest")
_ALIAS = re.compile(r"[A-Za-z0-9_-]+")
#: Aliases that would be read as the beginning of another key.
_RESERVED = frozenset({"consumer", "producer", "admin", "mirror", "config"})
_QUOTES_AROUND = re.compile(r"^[\"']+|[\"']+$")
_TO_TRIM = "".join(map(chr, range(0x21)))


@dataclass(frozen=True, slots=True)
class MirrorMaker1:
    """The options of one process of MirrorMaker 1.

    Attributes:
        consumer: the bytes of the file of `--consumer.config`.
        producer: the bytes of the file of `--producer.config`.
        include: the regex of `--include` or `--whitelist`.
        num_streams: `--num.streams`.
        options: the other options, by their names without dashes in front.
    """

    consumer: bytes
    producer: bytes
    include: str
    num_streams: int = 1
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """The new file.

    Attributes:
        text: ASCII, ready to be written; it holds the secrets of the old files.
        remarks: what the operator has to check before the first run.
        group: the consumer group that holds MirrorMaker 1's progress, None if none was named.
    """

    text: str
    placed: tuple[Placed, ...]
    listed: tuple[Listed, ...]
    remarks: tuple[str, ...]
    group: str | None


def import_mirror_maker_1(old: MirrorMaker1, *, source: str, target: str) -> Imported:
    """Convert one process's settings to a file with the flow `source->target`.

    Raises:
        ConfigurationError: an alias, a file or the regex cannot be used.
    """
    _check_aliases(source, target)
    consumer = read_properties(old.consumer, CONSUMER)
    producer = read_properties(old.producer, PRODUCER)
    sides = (_Side("consumer", CONSUMER, source, consumer), _Side("producer", PRODUCER, target, producer))
    placed: list[Placed] = []
    listed: list[Listed] = []
    for side in sides:
        for found in side.settings():
            (placed if isinstance(found, Placed) else listed).append(found)  # type: ignore[arg-type]
    placed, conflicting = _joined_providers(placed)
    listed += conflicting
    placed += _from_command(old, source, target)
    for name, value in old.options:
        if name == "offset.commit.interval.ms" and _is_positive(value):
            placed.append(Placed(COMMAND, name, f"{target}.offset.flush.interval.ms", value))
        else:
            listed.append(Listed(COMMAND, name, value, _option_reason(name)))
    settings = sides[0].values
    group = settings.get("group.id", "").strip() or None
    remarks = tuple(_remarks(old, sides))
    text = written_file(
        source, target, placed, listed, remarks, group=group, servers=settings["bootstrap.servers"].strip()
    )
    return Imported(text, tuple(placed), tuple(listed), remarks, group)


def topic_regex(include: str) -> str:
    """Return the regex that MirrorMaker 1 subscribed to: commas become alternatives, blanks and outer quotes are
    removed.

    The rule is that of `kafka.utils.TopicFilter` in Kafka 3.9.

    Raises:
        ConfigurationError: it is empty or not a Java regex.
    """
    regex = _QUOTES_AROUND.sub("", include.strip(_TO_TRIM).replace(",", "|").replace(" ", ""))
    if not regex:
        raise ConfigurationError(
            "no topics are selected.", action="Pass the regex of MirrorMaker 1's --include or --whitelist."
        )
    try:
        compile_java(regex)
    except ValueError as error:
        raise ConfigurationError(
            f"the topic regex {include!r} is not a valid Java regex: {error}.",
            action="Correct it; commas separate alternatives.",
        ) from error
    return regex


def all_topics_but(blacklist: str) -> str:
    """Return the regex of `--include` that selects the same topics as a `--blacklist` of MirrorMaker 1.

    Raises:
        ConfigurationError: it is empty or not a Java regex.
    """
    return f"(?!(?:{topic_regex(blacklist)})$).*"


class _Side:
    """One of the two files, and its cluster."""

    def __init__(self, kind: str, origin: str, alias: str, file: PropertiesFile) -> None:
        self.kind, self.origin, self.alias = kind, origin, alias
        self._file = file
        self.values = {key: entry.value for key, entry in file.effective.items()}
        if not self.values.get("bootstrap.servers", "").strip():
            raise ConfigurationError(
                f"{origin} has no bootstrap.servers.",
                action="Add it; files for Kafka 0.8, with zookeeper.connect or metadata.broker.list, contain no "
                "brokers.",
            )

    def settings(self) -> Iterator[Placed | Listed]:
        counts = {id(entry) for entry in self._file.effective.values()}
        for entry in self._file.entries:
            if id(entry) not in counts:
                again = "it is set again later in the same file, and that value is used"
                yield Listed(self.origin, entry.key, entry.value, again)
                continue
            key = self._key(entry.key, entry.value)
            if key is None:
                yield Listed(self.origin, entry.key, entry.value, self._reason(entry.key))
            else:
                yield Placed(self.origin, entry.key, key, entry.value)

    def _key(self, name: str, value: str) -> str | None:
        if name in CLIENT_SET:
            return f"{self.alias}.{name}"
        if name in APPLIED[self.kind] or self._is_usable_reset(name, value):
            return f"{self.alias}.{self.kind}.{name}"
        if name == _PROVIDERS or self._is_provider(name):
            return name
        return None

    def _is_usable_reset(self, name: str, value: str) -> bool:
        return self.kind == "consumer" and name == "auto.offset.reset" and value.strip().lower() in _RESETS

    def _is_provider(self, name: str) -> bool:
        providers = [part.strip() for part in self.values.get(_PROVIDERS, "").split(",")]
        return any(part and name.startswith(f"{_PROVIDERS}.{part}.") for part in providers)

    def _reason(self, name: str) -> str:
        if self.kind == "consumer" and name == "auto.offset.reset":
            return "a flow can start a topic at its earliest or latest offset; mirror.first.start supports other starts"
        if name.startswith(f"{_PROVIDERS}."):
            return f"{_PROVIDERS} does not contain this provider"
        return reason(self.kind, name)


def _check_aliases(source: str, target: str) -> None:
    for alias in (source, target):
        if not _ALIAS.fullmatch(alias) or alias in _RESERVED:
            raise ConfigurationError(
                f"{alias!r} is not a valid cluster alias.",
                action="Use letters, digits, hyphens and underscores, such as primary and backup.",
            )
    if source == target:
        raise ConfigurationError("source and target have the same alias.", action="Use two different aliases.")


def _joined_providers(placed: Sequence[Placed]) -> tuple[list[Placed], list[Listed]]:
    """Merge the providers of both files: one file has one list of them."""
    kept: dict[str, Placed] = {}
    listed: list[Listed] = []
    for each in placed:
        before = kept.get(each.key)
        if before is None:
            kept[each.key] = each
        elif each.key == _PROVIDERS:
            names = dict.fromkeys(part.strip() for part in f"{before.value},{each.value}".split(",") if part.strip())
            kept[each.key] = Placed(f"{before.origin} and {each.origin}", each.name, each.key, ", ".join(names))
        elif before.value == each.value:
            kept[each.key] = Placed(f"{before.origin} and {each.origin}", each.name, each.key, each.value)
        else:
            clash = f"{before.origin} has another value: rename one of the two providers"
            listed.append(Listed(each.origin, each.name, each.value, clash))
    return list(kept.values()), listed


def _from_command(old: MirrorMaker1, source: str, target: str) -> Iterator[Placed]:
    if old.num_streams < 1:
        raise ConfigurationError("--num.streams must be at least 1.", action="Pass the value that MirrorMaker 1 had.")
    yield Placed(COMMAND, "include", f"{source}{ARROW}{target}.topics", topic_regex(old.include))
    yield Placed(COMMAND, "num.streams", "tasks.max", str(old.num_streams))


def _is_positive(text: str) -> bool:
    try:
        value = parse_value(ValueType.LONG, text)
    except ValueError:
        return False
    return isinstance(value, int) and value > 0


def _option_reason(name: str) -> str:
    if name == "offset.commit.interval.ms":
        return "it must be a number of milliseconds above 0"
    return OPTION_REASONS.get(name, "it is not an option of MirrorMaker 1 with a counterpart here")


def _remarks(old: MirrorMaker1, sides: Iterable[_Side]) -> Iterator[str]:
    options = dict(old.options)
    if "message.handler" in options:
        yield (
            f"MirrorMaker 1 ran the message handler {options['message.handler']}. It does not run here: see below "
            "for a replacement, and do not start before this is resolved."
        )
    if options.get("abort.on.send.failure", "true").strip().lower() == "false":
        yield (
            "MirrorMaker 1 dropped records that the target rejected. Here their partition stops: choose a "
            "mirror.poison.policy, see below."
        )
    for side in sides:
        yield from _login_remarks(side)
        if side.kind == "consumer" and not side.values.get("group.id"):
            yield f"{side.origin} has no group.id, so the progress of MirrorMaker 1 is unknown."


def _login_remarks(side: _Side) -> Iterator[str]:
    protocol = side.values.get("security.protocol", "PLAINTEXT").strip().upper()
    if not protocol.startswith("SASL"):
        return
    mechanism = side.values.get("sasl.mechanism", "GSSAPI").strip()
    if not side.values.get("sasl.jaas.config"):
        yield (
            f"{side.origin} has no sasl.jaas.config, so MirrorMaker 1 took its login from the file in "
            f"java.security.auth.login.config. Write that login as {side.alias}.sasl.jaas.config."
        )
    if mechanism == "GSSAPI":
        yield (
            f"{side.origin} uses sasl.mechanism=GSSAPI, which needs a Kafka client with Kerberos: see docs/security.md."
        )
    elif mechanism not in MECHANISMS:
        yield (
            f"{side.origin} uses sasl.mechanism={mechanism}, which is not supported. Use one of "
            f"{', '.join(MECHANISMS)}, or TLS client certificates."
        )
