"""Groups of commands that only features have commands in."""

from __future__ import annotations

import typer

from mirror_lib.cli.commands import command_group


def _group_without_commands(name: str) -> typer.Typer:
    group = command_group(name)
    # Typer refuses a group without commands and without a callback.
    group.callback()(lambda: None)
    return group


app = typer.Typer()
app.add_typer(_group_without_commands("config"))
app.add_typer(_group_without_commands("spark"))
