"""Time of steps: by kind of step, and in commands of the product separately from the model's own clients."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class _Spent:
    steps: int = 0
    seconds: float = 0.0
    commands: int = 0
    command_seconds: float = 0.0


class Times:
    """Time of steps so far; nested steps count for the outer one."""

    def __init__(self) -> None:
        self._spent: defaultdict[str, _Spent] = defaultdict(_Spent)
        self._kind = ""

    @contextmanager
    def step(self, kind: str) -> Iterator[None]:
        """Measure a step."""
        began, self._kind = time.monotonic(), kind
        spent = self._spent[kind]
        try:
            yield
        finally:
            spent.steps += 1
            spent.seconds += time.monotonic() - began

    @contextmanager
    def command(self) -> Iterator[None]:
        """Measure a command of the product, from its fork to its end."""
        began = time.monotonic()
        spent = self._spent[self._kind]
        try:
            yield
        finally:
            spent.commands += 1
            spent.command_seconds += time.monotonic() - began

    def table(self) -> Sequence[str]:
        """Return milliseconds of a step of each kind, the kinds with the largest total first."""
        lines = [
            f"{'kind of step':<16}{'steps':>7}{'ms a step':>11}{'commands':>10}{'in commands':>13}{'own clients':>13}"
        ]
        for kind, spent in sorted(self._spent.items(), key=lambda item: -item[1].seconds):
            in_commands = 1000 * spent.command_seconds / spent.steps
            total = 1000 * spent.seconds / spent.steps
            own = total - in_commands
            numbers = (
                f"{spent.steps:>7}{total:>11.0f}{spent.commands / spent.steps:>10.1f}{in_commands:>13.0f}{own:>13.0f}"
            )
            lines.append(f"{kind:<16}{numbers}")
        return lines
