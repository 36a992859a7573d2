"""A SIGTERM ends a bench as Ctrl-C does: with everything that it has started."""

from __future__ import annotations


def interrupt(*_: object) -> None:
    """The handler.

    Raises:
        KeyboardInterrupt: always.
    """
    raise KeyboardInterrupt
