"""Parses values as Kafka's `ConfigDef.parseType` does."""

from __future__ import annotations

import re
from enum import StrEnum

Value = bool | int | float | str | tuple[str, ...]

#: Digits of any script, as `Integer.parseInt` and Python's `int` take them.
_DIGITS = re.compile(r"[+-]?\d+\Z")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)
#: The characters that `String.trim()` removes: up to U+0020.
_TRIMMED = "".join(map(chr, range(0x21)))
#: `ConfigDef.COMMA_WITH_WHITESPACE`; Java's blanks, which do not include the no-break space of copied texts.
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


class ValueType(StrEnum):
    """The `ConfigDef` types of MM2's keys."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


_BITS = {ValueType.SHORT: 16, ValueType.INT: 32, ValueType.LONG: 64}


def parse_value(kind: ValueType, text: str) -> Value:
    """The value of a setting, without surrounding blanks.

    Raises:
        ValueError: the text is not of that type; the message completes "must be".
    """
    trimmed = text.strip(_TRIMMED)
    if kind in (ValueType.STRING, ValueType.CLASS, ValueType.PASSWORD):
        return trimmed
    if kind is ValueType.LIST:
        return parse_list(trimmed)
    if kind is ValueType.BOOLEAN:
        return _boolean(trimmed)
    if kind is ValueType.DOUBLE:
        if not _DECIMAL.match(trimmed):
            raise ValueError("a number")
        return float(trimmed)
    return _integer(trimmed, _BITS[kind])


def parse_list(text: str) -> tuple[str, ...]:
    """The members between commas, trimmed; empty members are kept, an empty text has none."""
    trimmed = text.strip(_TRIMMED)
    return tuple(_COMMA.split(trimmed)) if trimmed else ()


def parse_raw_boolean(text: str | None) -> bool:
    """Java's `Boolean.parseBoolean`: only `true` without blanks is true. MM2 uses it for a flow's enabled flag."""
    return text is not None and text.lower() == "true"


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("true or false")
    return lowered == "true"


def _integer(text: str, bits: int) -> int:
    if not _DIGITS.match(text):
        raise ValueError("a whole number")
    value = int(text)
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise ValueError(f"a whole number from {-limit} to {limit - 1}")
    return value
