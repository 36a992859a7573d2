"""Airflow's names of retry policies, where there are none."""

from __future__ import annotations

from typing import Self


class RetryDecision:
    """Whether a failed task is retried."""

    def __init__(self, *, fails: bool, reason: str = "") -> None:
        self.fails, self.reason = fails, reason

    @classmethod
    def fail(cls, reason: str = "") -> Self:
        """Return: not retried."""
        return cls(fails=True, reason=reason)

    @classmethod
    def default(cls) -> Self:
        """Return: as the task's `retries`."""
        return cls(fails=False)


class RetryPolicy:
    """Decides about retries."""
