"""Fields of Kafka's protocol, encoded by its description and not by the code under test."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """An unsigned varint (KIP-482)."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def compact(text: str | None) -> bytes:
    """A string or null in the compact encoding (KIP-482)."""
    raw = b"" if text is None else text.encode()
    return varint(0 if text is None else len(raw) + 1) + raw


def plain(text: str) -> bytes:
    """A string in the encoding before KIP-482."""
    raw = text.encode()
    return len(raw).to_bytes(2, "big") + raw
