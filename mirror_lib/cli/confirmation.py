"""The common part of commands that need an operator's decision: who it is, why, and the confirmation."""

from __future__ import annotations

import getpass
import socket
from typing import Annotated

import typer

from mirror_lib.cli.output import Output

NoteOption = Annotated[str | None, typer.Option("--note", help="Reason, stored in the ledger.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def ask_confirmation(question: str) -> bool:
    """Return True if the operator at the console agrees."""
    # On stderr, since stdout may be one JSON document; without a terminal there is no agreement.
    try:
        return typer.confirm(question, default=False, err=True)
    except typer.Abort:
        return False


def is_confirmed(output: Output, question: str, *, yes: bool, possible: bool = True) -> bool:
    """Return True if the operator agrees, by `--yes` or at the console; else note that, and set exit code 1.

    Args:
        possible: False if there is nothing to agree to.
    """
    if possible and (yes or ask_confirmation(question)):
        return True
    output.note("Nothing was changed.")
    output.exit_code = output.exit_code or 1
    return False


def person() -> str:
    """Return who runs this process, and where."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
