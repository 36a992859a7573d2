"""The common part of commands that need an operator's decision: who it is, why, and the confirmation."""

from __future__ import annotations

import getpass
import socket
from typing import Annotated

import typer

NoteOption = Annotated[str | None, typer.Option("--note", help="Reason, stored in the ledger.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def ask_confirmation(question: str) -> bool:
    """Return True if the operator at the console agrees."""
    # On stderr, since stdout may be one JSON document; without a terminal there is no agreement.
    try:
        return typer.confirm(question, default=False, err=True)
    except typer.Abort:
        return False


def person() -> str:
    """Return who runs this process, and where."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
