"""Malformed responses of brokers: every parser reports them by one type of error.

Bytes from a socket are never trusted. A proxy may have changed them, or the peer is not a broker.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from mirror_lib.errors import ClusterError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class GarbledAnswerError(ClusterError):
    """A broker's response is malformed (Java `SchemaException`)."""

    reason = "garbled-answer"
    #: The next response may be valid again, over a new connection.
    retriable = True


def response_of(request: str) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """A decorator for parsers of the response to a request: malformed bytes raise `GarbledAnswerError`."""

    def decorate(read: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @wraps(read)
        def parse(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            try:
                return read(*arguments, **named)
            except (struct.error, IndexError, ValueError, OverflowError) as error:
                raise GarbledAnswerError(
                    f"the response to {request} is malformed: {error}.",
                    action="Check that bootstrap.servers points to Kafka brokers, without another service in between.",
                ) from error

        return parse

    return decorate
