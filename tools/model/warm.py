"""Loaded once by the process that commands are forked from, to save each command the same work.

A third of the work of a `mirror run` that copies little is building the command line parser, and a first command takes
half a second to load the ledger's migrations. Nothing here starts a thread or opens a connection: forks would not have
them.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import typer.main

from mirror_lib.cli.main import app
from mirror_lib.ledger.store import Ledger


def _warm() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(f"sqlite:///{Path(folder) / 'ledger.sqlite3'}")
        ledger.migrate()
        ledger.close()
    made = typer.main.get_command(app)
    setattr(typer.main, "get_command", lambda _app: made)  # noqa: B010
    gc.collect()
    # A collection in a fork would touch, and so copy, every page.
    gc.freeze()


_warm()
