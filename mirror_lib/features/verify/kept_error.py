"""The error of one partition, which must not end the comparison of the others."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

from mirror_lib.errors import MirrorError

_log = logging.getLogger(__name__)


class KeptError:
    """A context that keeps the error of its block and does not raise it; an unexpected one is logged."""

    def __init__(self, doing: str, log: str = "this log") -> None:
        """Args:
        doing: what the block does, such as `verifying orders-0`.
        log: where an unexpected error is.
        """
        self.error: MirrorError | None = None
        self._doing = doing
        self._log_name = log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, MirrorError):
            self.error = error
        elif isinstance(error, Exception):
            _log.error("%s failed", self._doing, exc_info=error)
            self.error = MirrorError(
                f"internal error in the verification: {type(error).__name__}: {error}.",
                action=f"Please report it with {self._log_name}.",
            )
        return self.error is not None
