"""What a new Python process has loaded after some code."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable


def loaded_after(code: str, names: Iterable[str], *arguments: object) -> list[str]:
    """Return the modules of `names` that a new process has loaded after `code`; `arguments` are its `sys.argv`."""
    program = f"{code}\nimport sys\nprint([name for name in {tuple(names)!r} if name in sys.modules])"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stdout.splitlines()[-1])
