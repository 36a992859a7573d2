"""The largest response to a request, by its kind: a broker, or an impostor, may announce up to 2 GiB for any."""

from __future__ import annotations

from mirror_lib.cluster.protocol.api_names import api_name
from mirror_lib.outside_limits import (
    FETCH_BEYOND_BYTES,
    LIST_RESPONSE_BYTES,
    LOGIN_RESPONSE_BYTES,
    METADATA_RESPONSE_BYTES,
    RESPONSE_BYTES,
    SMALL_RESPONSE_BYTES,
)

#: Responses up to this size are allowed for every request.
ALWAYS_ALLOWED = min(LOGIN_RESPONSE_BYTES, SMALL_RESPONSE_BYTES, METADATA_RESPONSE_BYTES)

#: API keys. The protocol's modules import the connection's types, so their names cannot be used here.
_FETCH, _METADATA = 1, 3
_LOGIN = frozenset({17, 18, 36})
#: OffsetFetch, DescribeGroups, ConsumerGroupDescribe: members have contents of their own.
_GROUPS = frozenset({9, 15, 69})
#: ListGroups, DescribeAcls, DescribeLogDirs, DescribeProducers, DescribeTransactions, ListTransactions.
_LISTS = frozenset({16, 29, 35, 61, 65, 66})
_PER_REQUEST_BYTE, _METADATA_PER_REQUEST_BYTE = 16, 32 * 1024


def largest_response(api_key: int, request_bytes: int, fetch_bytes: int = 0) -> int:
    """Return the bytes of the largest response that is read.

    Args:
        request_bytes: of the request.
        fetch_bytes: for a fetch, the bytes that it requests.
    """
    if api_key == _FETCH:
        return fetch_bytes + FETCH_BEYOND_BYTES
    if api_key == _METADATA:
        return min(METADATA_RESPONSE_BYTES + _METADATA_PER_REQUEST_BYTE * request_bytes, RESPONSE_BYTES)
    if api_key in _LOGIN:
        return LOGIN_RESPONSE_BYTES
    if api_key in _LISTS:
        return LIST_RESPONSE_BYTES
    if api_key in _GROUPS:
        return RESPONSE_BYTES
    return min(SMALL_RESPONSE_BYTES + _PER_REQUEST_BYTE * request_bytes, RESPONSE_BYTES)


def size_problem(size: int, api_key: int, largest: int) -> str | None:
    """Return what is wrong with an announced response; None if it may be read."""
    if size < 0:
        return f"the broker announced a response of {size} bytes"
    if size <= largest:
        return None
    return f"the broker announced a response of {size:,} bytes to {api_name(api_key)}, and {largest:,} are allowed"
