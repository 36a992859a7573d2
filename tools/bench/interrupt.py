"""The end of a bench: SIGTERM like Ctrl-C, with all its processes, and failures as exit codes."""

from __future__ import annotations

import signal
from collections.abc import Callable

from rich.console import Console

from mirror_lib.errors import MirrorError


def interrupt(*_: object) -> None:
    """Handle a signal.

    Raises:
        KeyboardInterrupt: always.
    """
    raise KeyboardInterrupt


def exit_code(measure: Callable[[], int], progress: Console) -> int:
    """Measure, and print on `progress` why it was not finished.

    Returns:
        The result of `measure`; 2 if an argument is wrong (`ValueError`), 130 if it was interrupted.
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
        progress.print("interrupted; all processes are stopped")
        return 130
