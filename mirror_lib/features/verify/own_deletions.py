"""Deletions that the replicator itself writes to a target, and their recognition in a log.

They are tombstones of keys that the source has deleted, although no record of the source shows it any more. They have
no counterpart there, so a comparison of the two logs must skip them, even if the ledger is lost. Each has a header with
the flow and the offset at which its batch starts: a copy of it elsewhere is an ordinary record.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirror_lib.records.compression.codecs import CodecError, decompress
from mirror_lib.records.header import CODEC_BITS, TRANSACTIONAL_BIT
from mirror_lib.records.spans import Span
from mirror_lib.records.varint import encode_varint, with_size

_HEADER = b"mirror.deletion"
_NO_VALUE = encode_varint(-1)


def deletion(key: bytes, flow: str, base_offset: int) -> bytes:
    """The encoded tombstone of a key, from the fields after its deltas on.

    Args:
        base_offset: of its batch on the target.
    """
    return with_size(key) + _NO_VALUE + _mark(flow, base_offset)


def hide_own_deletions(spans: Iterable[Span], flow: str) -> list[Span]:
    """The spans of a target, with the flow's own deletions hidden."""
    return [Span(each.first, each.next_offset) if _is_own(each, flow) else each for each in spans]


def _is_own(span: Span, flow: str) -> bool:
    header = span.header
    if header is None or not header.attributes & TRANSACTIONAL_BIT or not header.count:
        return False
    body: bytes | bytearray | memoryview = span.body
    if header.attributes & CODEC_BITS:
        # The topic may have its own codec.
        try:
            body = decompress(header.attributes & CODEC_BITS, memoryview(span.body))
        except CodecError:
            return False
    # The batch has nothing else, and its records end with their headers.
    return bytes(body[-_LONGEST_MARK:]).endswith(_mark(flow, header.base_offset))


#: Size of a header that names two clusters with names of any sensible length.
_LONGEST_MARK = 1024


def _mark(flow: str, base_offset: int) -> bytes:
    return encode_varint(1) + with_size(_HEADER) + with_size(f"{flow} {base_offset}".encode())
