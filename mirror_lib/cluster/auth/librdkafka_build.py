"""What the installed librdkafka was built with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def librdkafka_accepts(properties: Mapping[str, Any]) -> bool:
    """True if a client with these properties can be made; it connects to nothing."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({**properties, "log_level": 0})
    except KafkaException:
        return False
    return True
