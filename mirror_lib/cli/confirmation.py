"""What commands that change something by a person's word have in common: who it is, why, and asking first."""

from __future__ import annotations

import getpass
import socket
from typing import Annotated

import typer

NoteOption = Annotated[str | None, typer.Option("--note", help="Why; kept in the ledger.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before it is done.")]


def confirmed(question: str) -> bool:
    """Whether whoever sits at the console agrees."""
    # On stderr, since stdout may be one JSON document; whoever cannot be asked has not agreed.
    try:
        return typer.confirm(question, default=False, err=True)
    except typer.Abort:
        return False


def person() -> str:
    """Who runs this process, and where."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
