"""Validate the value of one setting."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable

from mirror_lib.config.file.addresses import USER_INFORMATION, AddressError, parse_addresses
from mirror_lib.config.file.known_classes import FOREIGN_CLASSES, class_advice
from mirror_lib.config.first_start import OFFSET_RESET, parse_offset_reset
from mirror_lib.config.model import IsolationLevel
from mirror_lib.config.settings.definition import Definition
from mirror_lib.config.settings.mirror_keys import LEDGER_URL
from mirror_lib.installed_features import imported
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.java_types import ValueType, parse_list, parse_value
from mirror_lib.topology.policy import IDENTITY_LIKE

#: Of the producer that writes the data.
REQUEST_SIZE = "max.request.size"
#: Settings of clients that have an effect here and are times.
_MILLISECONDS = ("request.timeout.ms", "metadata.max.age.ms")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_JAVA = "org.apache.kafka.connect.mirror"
#: Implementations here of MM2's classes.
KNOWN_CLASSES = {
    "replication.policy.class": (f"{_JAVA}.DefaultReplicationPolicy", f"{_JAVA}.IdentityReplicationPolicy"),
    "topic.filter.class": (f"{_JAVA}.DefaultTopicFilter",),
    "group.filter.class": (f"{_JAVA}.DefaultGroupFilter",),
    "config.property.filter.class": (f"{_JAVA}.DefaultConfigPropertyFilter",),
}


class InvalidValueError(ValueError):
    """A value that is not valid; the message completes "must be"."""

    def __init__(self, must_be: str, suggestion: str | None = None) -> None:
        super().__init__(must_be)
        self.suggestion = suggestion


def check_value(definition: Definition, text: str) -> None:
    """Check a value as far as possible without other settings.

    Raises:
        ValueError: the value is not valid; the message completes "must be".
    """
    definition.parse(text)
    check = imported(definition.check) if definition.check else definition.read or _FURTHER_CHECKS.get(definition.name)
    if check is not None:
        check(text)


def check_client_value(name: str, text: str) -> None:
    """Check a property of a client.

    Raises:
        ValueError: the value is not valid; the message completes "must be".
    """
    if name == "bootstrap.servers":
        check_bootstrap_servers(text)
    elif name == "security.protocol" and text.strip().upper() not in SECURITY_PROTOCOLS:
        raise ValueError("one of " + ", ".join(SECURITY_PROTOCOLS))
    elif name == "isolation.level" and text.strip().lower() not in list(IsolationLevel):
        raise ValueError("one of " + ", ".join(IsolationLevel))
    elif name == REQUEST_SIZE:
        parse_request_size(text)
    elif name == OFFSET_RESET:
        parse_offset_reset(text.strip())
    elif name in _MILLISECONDS:
        milliseconds = parse_value(ValueType.LONG, text)
        if not isinstance(milliseconds, int) or milliseconds < 0:
            raise ValueError("a whole number of milliseconds, at least 0")


def parse_request_size(text: str) -> int:
    """Parse the bytes of the batches in a produce request, as Java's producer limits them (`ProducerConfig`).

    Raises:
        ValueError: the text is not a number of bytes; the message completes "must be".
    """
    size = parse_value(ValueType.INT, text)
    if not isinstance(size, int) or size < 1:
        raise ValueError("a whole number of bytes, at least 1")
    return size


def check_bootstrap_servers(text: str) -> None:
    """Check host and port of each.

    Raises:
        ValueError: a member is not an address.
    """
    try:
        parse_addresses(text)
    except AddressError as error:
        member = error.member or ""
        repeated = member.lstrip("=")
        if member == USER_INFORMATION:
            raise InvalidValueError(str(error), "write user and password into sasl.jaas.config") from error
        if repeated != member:
            raise InvalidValueError(str(error), f"remove the second = before {repeated}") from error
        if parts := [part for part in re.split(r"[;\s]+", member) if part][1:]:
            raise InvalidValueError(str(error), f"separate the addresses by commas, before {parts[0]} too") from error
        if member and ":" not in member:
            raise InvalidValueError(str(error), f"write {member}:9092, or the port of its listener") from error
        if member.startswith(":"):
            raise InvalidValueError(str(error), f"write the host before {member}") from error
        raise


def _check_class(key: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        name = text.strip()
        known = KNOWN_CLASSES[key]
        if name in known or name in IDENTITY_LIKE or _is_importable(name):
            return
        choice = " or ".join(known)
        if name in FOREIGN_CLASSES:
            raise InvalidValueError(
                f"a class that exists, and {name} never did in Kafka", f"write {FOREIGN_CLASSES[name]}"
            )
        raise InvalidValueError(
            f"{choice} or the dotted path of a Python class; other Java classes cannot run here",
            class_advice(key, name, known),
        )

    return check


def _is_importable(name: str) -> bool:
    module, dot, _ = name.rpartition(".")
    try:
        return bool(dot) and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


#: As the ledger takes them; named here because SQLAlchemy would make each parse of a DAG slower.
_LEDGER_DRIVERS = frozenset({"sqlite", "sqlite+pysqlite", "postgres", "postgresql", "postgresql+psycopg"})


def _check_ledger_url(text: str) -> None:
    driver, separator, place = text.strip().partition("://")
    in_memory = driver.startswith("sqlite") and place.strip("/") in ("", ":memory:")
    if not separator or driver not in _LEDGER_DRIVERS or in_memory:
        raise ValueError(
            "an SQLAlchemy URL of SQLite or PostgreSQL, such as sqlite:///ledger.sqlite3 or "
            "postgresql+psycopg://user@host/database"
        )


def _check_replication_factor(text: str) -> None:
    if int(text) != -1 and int(text) < 1:
        raise ValueError("at least 1, or -1 for the default of the brokers")


def _check_regexes(text: str) -> None:
    try:
        compile_list(parse_list(text))
    except ValueError as error:
        raise ValueError(f"a list of names or Java regexes; {error}") from error


_FURTHER_CHECKS: dict[str, Callable[[str], object]] = {
    "bootstrap.servers": check_bootstrap_servers,
    "topics": _check_regexes,
    "topics.exclude": _check_regexes,
    "groups": _check_regexes,
    "groups.exclude": _check_regexes,
    "config.properties.exclude": _check_regexes,
    **dict.fromkeys(
        (
            "replication.factor",
            "heartbeats.topic.replication.factor",
            "checkpoints.topic.replication.factor",
            "offset-syncs.topic.replication.factor",
            "offset.storage.replication.factor",
        ),
        _check_replication_factor,
    ),
    LEDGER_URL: _check_ledger_url,
    **{key: _check_class(key) for key in KNOWN_CLASSES},
}
