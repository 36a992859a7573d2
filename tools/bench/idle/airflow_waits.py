"""Waits for Airflow, which also fails requests while it is busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from mirror_lib.features.demo.airflow_api import AirflowApiError
from tools.bench.errors import BenchError

_Answer = TypeVar("_Answer")
_POLL_SECONDS = 1.0


def patiently(ask: Callable[[], _Answer], seconds: float, what: str) -> _Answer:
    """Return the first response that is not empty.

    Args:
        seconds: maximum wait.
        what: is waited for, for the error.

    Raises:
        BenchError: there was none in time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(AirflowApiError):
            if answer := ask():
                return answer
        time.sleep(_POLL_SECONDS)
    raise BenchError(f"{what} did not come in {seconds:.0f} s")
