"""The failures that Airflow retries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mirror_lib.airflow.compatibility import (
    HAS_RETRY_POLICIES,
    AirflowFailException,
    Context,
    RetryDecision,
    RetryPolicy,
)
from mirror_lib.errors import AuthenticationError, MirrorError
from mirror_lib.printable_errors import printable_error

#: Exit codes that no retry can fix (design section 7): wrong configuration, and a manual decision.
_HOPELESS = frozenset({2, 3})


def is_hopeless(error: BaseException) -> bool:
    """Return True if a task that raised this should fail at once.

    A refused login counts, since repeating it can lock the account. Unknown errors are retried.
    """
    return isinstance(error, AuthenticationError) or (isinstance(error, MirrorError) and error.exit_code in _HOPELESS)


class ErrorClassRetryPolicy(RetryPolicy):  # type: ignore[misc]  # Airflow is untyped here
    """Fails at once for errors that only an operator can fix, and leaves all others to the task's `retries`."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Context | None = None,
    ) -> RetryDecision:
        """Called by Airflow in the task's own process."""
        del try_number, max_tries, context
        if is_hopeless(exception):
            return RetryDecision.fail(reason=f"not retried, a retry would fail again: {exception}")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """Return nothing: the policy has no settings."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> ErrorClassRetryPolicy:
        """The inverse of `serialize`."""
        del data
        return cls()


def retry_policy() -> dict[str, Any]:
    """Return the argument of operators for the policy, none for an Airflow without retry policies (3.2)."""
    return {"retry_policy": ErrorClassRetryPolicy()} if HAS_RETRY_POLICIES else {}


@contextmanager
def failing_at_once() -> Iterator[None]:
    """Within this context of a task, do what the policy does in an Airflow without retry policies.

    Airflow logs the texts of exceptions as they are.
    """
    try:
        yield
    except Exception as error:
        shown = printable_error(error)
        if isinstance(error, MirrorError) and is_hopeless(error) and not HAS_RETRY_POLICIES:
            raise AirflowFailException(str(error)) from shown
        if shown is error:
            raise
        cause = shown.__cause__ if shown.__suppress_context__ else shown.__cause__ or shown.__context__
        # The context would be the exception that is not shown.
        raise shown from cause
