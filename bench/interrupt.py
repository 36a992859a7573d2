"""How a bench ends: a SIGTERM as Ctrl-C does, with everything that it has started, and failures as exit codes."""

from __future__ import annotations

import signal
from collections.abc import Callable

from rich.console import Console

from mirror_lib.errors import MirrorError


def interrupt(*_: object) -> None:
    """The handler.

    Raises:
        KeyboardInterrupt: always.
    """
    raise KeyboardInterrupt


def exit_code(measure: Callable[[], int], progress: Console) -> int:
    """Measure, and tell on `progress` why it did not come to its end.

    Returns:
        What `measure` returns; 2 where an argument is wrong (`ValueError`), 130 when it was interrupted.
    """
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return measure()
    except ValueError as error:
        progress.print(str(error), style="red", markup=False)
        return 2
    except MirrorError as error:
        progress.print(str(error), style="red", markup=False)
        return error.exit_code
    except KeyboardInterrupt:
        progress.print("interrupted; everything is stopped")
        return 130
