"""Answers of brokers that are not what the protocol says: whoever reads them says so by one type of error.

What arrives on a socket is never trusted. Something between us and the broker may have changed it, or it is no broker.
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
    """A broker's answer cannot be read (Java `SchemaException`)."""

    reason = "garbled-answer"
    #: The next answer may be whole again, over a new connection.
    retriable = True


def answer_of(request: str) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """A decorator for what reads the answer to a request: where the bytes lead astray, `GarbledAnswerError`."""

    def decorated(read: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @wraps(read)
        def reading(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            try:
                return read(*arguments, **named)
            except (struct.error, IndexError, ValueError, OverflowError) as error:
                raise GarbledAnswerError(
                    f"the answer to {request} cannot be read: {error}.",
                    action="Check that bootstrap.servers leads to Kafka brokers and not to something in between.",
                ) from error

        return reading

    return decorated
