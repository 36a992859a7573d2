"""Errors between the page and Airflow."""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class DagUnknownError(MirrorError):
    """Airflow has not parsed a flow's DAG."""

    reason = "dag-unknown"


class DagRefusedError(MirrorError):
    """Airflow rejects the start of a run."""

    reason = "dag-refused"


class TooManyRequestsError(MirrorError):
    """A visitor made too many requests; the same request succeeds a little later."""

    reason = "too-many-requests"
    retriable = True
    #: Whole seconds until it succeeds.
    retry_after_seconds: int = 1

    @classmethod
    def after(cls, seconds: int) -> TooManyRequestsError:
        """Return the error for a retry after this number of whole seconds."""
        error = cls("Too many requests.", action=f"Try again in {seconds} s.")
        error.retry_after_seconds = seconds
        return error
