"""Commands that begin in the same way: a context manager declares their common options and prepares their work."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, TypeVar

_Begun = TypeVar("_Begun")


def begin_with(
    frame: Callable[..., AbstractContextManager[_Begun]],
) -> Callable[[Callable[Concatenate[_Begun, ...], None]], Callable[..., None]]:
    """Return a decorator that runs a command inside of `frame`, whose value is the command's first argument.

    The parameters of `frame` become options of the command, before its own; `--json` is the last one.
    """

    def decorate(command: Callable[Concatenate[_Begun, ...], None]) -> Callable[..., None]:
        of_frame = inspect.signature(frame, eval_str=True).parameters
        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        options = [each.replace(kind=each.KEYWORD_ONLY) for each in (*of_frame.values(), *own)]
        options.sort(key=lambda each: each.name == "as_json")

        @wraps(command)
        def run(**given: Any) -> None:
            with frame(**{name: given.pop(name) for name in of_frame}) as begun:
                command(begun, **given)

        # Typer reads the options there.
        setattr(run, "__signature__", inspect.Signature(options))  # noqa: B010
        run.__annotations__ = {each.name: each.annotation for each in options}
        return run

    return decorate
