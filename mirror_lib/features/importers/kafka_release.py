"""The release of Apache Kafka behind a version that Connect, Strimzi or a vendor states. Pure."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\D|\Z)")
_CONFLUENT = re.compile(r"-c(?:cs|e)\b")

Release = tuple[int, int]


def kafka_release(version: str) -> Release | None:
    """Return major and minor number; None if the text does not have them, such as the `1` of connectors before Kafka 3.

    Confluent's platform has its own numbers: 8.x is Kafka 4.x, 7.x is 3.x.
    """
    match = _NUMBERS.match(version.strip())
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    if _CONFLUENT.search(version) and major >= 6:
        return (major - 4, minor) if major >= 7 else (2, minor + 6)
    return major, minor
