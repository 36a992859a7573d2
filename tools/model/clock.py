"""A clock that jumps, in the process of one command: brokers, other commands and the model keep the true time."""

from __future__ import annotations

import datetime as datetimes
import sys
import time
from datetime import datetime as _TrueDateTime  # noqa: N812
from typing import Any

_true_time, _true_time_ns = time.time, time.time_ns
_ahead = 0.0


class _IsDateTime(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _TrueDateTime)


class _DateTime(_TrueDateTime, metaclass=_IsDateTime):
    @classmethod
    def now(cls, tz: datetimes.tzinfo | None = None) -> Any:
        return _TrueDateTime.fromtimestamp(_time(), tz)


def _time() -> float:
    return _true_time() + _ahead


def _time_ns() -> int:
    return _true_time_ns() + int(_ahead * 1e9)


def set_clock(ahead: float) -> None:
    """Let this process read another time from now on.

    Args:
        ahead: seconds that are added to the true time; negative: the clock is behind.
    """
    global _ahead
    _ahead = ahead
    if time.time is _time:
        return
    setattr(time, "time", _time)  # noqa: B010
    setattr(time, "time_ns", _time_ns)  # noqa: B010
    setattr(datetimes, "datetime", _DateTime)  # noqa: B010
    for module in list(sys.modules.values()):
        if (
            getattr(module, "__name__", "").startswith("mirror_lib")
            and getattr(module, "datetime", None) is _TrueDateTime
        ):
            setattr(module, "datetime", _DateTime)  # noqa: B010
