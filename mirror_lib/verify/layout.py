"""Whether a batch holds given records in their order: the place of every byte is known, so nothing is decoded. Pure.

The fields in front of a record's tail follow from its time, its number and its length (KIP-98). So it is enough to look
whether they stand where they should, and the tails between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mirror_lib.cluster.batches.record_blocks import RecordBlock

_Int64s = NDArray[np.int64]
_BITS_OF_BYTE = 7
_BITS, _MORE = 0x7F, 0x80


def holds(body: bytes, first_timestamp: int, parts: Sequence[RecordBlock]) -> bool:
    """Whether a dense, uncompressed body has exactly these records, encoded as every client does.

    False says nothing: numbers may be encoded in more bytes than they need.

    Args:
        first_timestamp: of the batch, from which the times in the body count.
        parts: at least one, with at least one record each.
    """
    times = np.concatenate([part.times for part in parts]) - first_timestamp
    tail_sizes = np.concatenate([part.ends - part.starts for part in parts])
    stamps = (times << 1) ^ (times >> 63)
    numbers = np.arange(len(times), dtype=np.int64) << 1
    stamp_sizes, number_sizes = _sizes(stamps), _sizes(numbers)
    # One byte of attributes is in front.
    lengths = 1 + stamp_sizes + number_sizes + tail_sizes
    length_sizes = _sizes(lengths << 1)
    ends = np.cumsum(length_sizes + lengths)
    if ends[-1] != len(body) or (stamps < 0).any():
        return False
    octets = np.frombuffer(body, dtype=np.uint8)
    at = ends - lengths - length_sizes
    if not _stand(octets, at, lengths << 1, length_sizes):
        return False
    at = ends - lengths + 1
    if not _stand(octets, at, stamps, stamp_sizes):
        return False
    if not _stand(octets, at + stamp_sizes, numbers, number_sizes):
        return False
    places = (ends - tail_sizes).tolist()
    tails = parts[0].tails if len(parts) == 1 else [tail for part in parts for tail in part.tails]
    return all(map(body.startswith, tails, places))


def _sizes(values: _Int64s) -> _Int64s:
    """Bytes that each value takes as an unsigned varint."""
    sizes = np.ones(len(values), dtype=np.int64)
    largest, bound = int(values.max()), 1 << _BITS_OF_BYTE
    while bound <= largest:
        sizes += values >= bound
        bound <<= _BITS_OF_BYTE
    return sizes


def _stand(octets: NDArray[np.uint8], at: _Int64s, values: _Int64s, sizes: _Int64s) -> bool:
    """Whether unsigned varints stand at their places."""
    for number in range(int(sizes.max())):
        if number:
            longer = np.flatnonzero(sizes > number)
            if len(longer) < len(at):
                at, values, sizes = at[longer], values[longer], sizes[longer]
        wanted = (values >> (_BITS_OF_BYTE * number)) & _BITS
        wanted[sizes > number + 1] |= _MORE
        if (octets[at + number] != wanted).any():
            return False
    return True
