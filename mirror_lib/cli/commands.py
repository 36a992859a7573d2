"""The commands of `mirror`. The module of a command is imported when the command is used.

So each module imports its dependencies (Kafka clients, SQL) at its top, and `mirror --help` starts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from mirror_lib.feature import Command
from mirror_lib.installed_features import installed_features

_T = TypeVar("_T")

#: Those of the core, in the order of `mirror --help`.
_OWN: Mapping[str, Command] = {
    "config": Command(
        "mirror_lib.cli.groups",
        "Check and explain a properties file, or import the configuration of another replicator.",
    ),
    "plan": Command(
        "mirror_lib.cli.plan",
        "Show what a run would copy now; changes nothing. Exit code 3 if a partition needs operator action.",
    ),
    "run": Command(
        "mirror_lib.cli.run.command",
        "Create missing topics, copy new records once, then exit; without Airflow. Ctrl-C stops it.",
    ),
    "status": Command(
        "mirror_lib.cli.status", "List the latest runs, or one run with its partitions; changes nothing."
    ),
    "topics": Command("mirror_lib.cli.sync.topics", "Create missing target topics and partitions."),
    "configs": Command("mirror_lib.cli.sync.configs", "Synchronize topic configs to the target."),
    "acls": Command(
        "mirror_lib.cli.sync.acls",
        "Synchronize topic ACLs to the target, and list the permissions that the flow itself needs.",
    ),
    "groups": Command("mirror_lib.cli.sync.groups", "Checkpoints and committed offsets of consumer groups."),
    "heartbeat": Command("mirror_lib.cli.sync.heartbeat", "Emit heartbeats, and check received heartbeats."),
    "gaps": Command("mirror_lib.cli.gaps", "Records lost at the source (gaps), and their resolution."),
    "spark": Command("mirror_lib.cli.groups", "Prepare what Spark needs to run the jobs."),
    "features": Command(
        "mirror_lib.cli.features", "List the features of this installation: what they add, and why one cannot be used."
    ),
}


@cache
def commands() -> Mapping[str, Command]:
    """Return all commands, those of the features too, in the order of `mirror --help`."""
    added: dict[str, Command] = {}
    for feature in installed_features().ready:
        for name, command in feature.commands.items():
            if " " not in name:
                added.setdefault(name, command)
    return _in_order(_OWN, added, lambda _, command: command)


def _added_to(group: str) -> Mapping[str, Command]:
    """The commands that features add to a group of commands, by their names in it."""
    return {
        name.removeprefix(f"{group} "): command
        for feature in installed_features().ready
        for name, command in feature.commands.items()
        if name.startswith(f"{group} ")
    }


def _in_order(
    own: Mapping[str, _T], added: Mapping[str, Command], make: Callable[[str, Command], _T]
) -> Mapping[str, _T]:
    """Return what is listed, with what features add: each after what its manifest names, which may be a feature's too.

    What exists stays: no feature replaces another's command.
    """
    found, left = dict(own), dict(added)
    while left:
        placed = (name for name, each in left.items() if each.after in found)
        name = next(placed, None) or next((name for name, each in left.items() if not each.after), next(iter(left)))
        command = left.pop(name)
        names = [each for each in found if each != name]
        place = names.index(command.after) + 1 if command.after in names else len(names)
        made = found[name] if name in found else make(name, command)
        found = {each: found.get(each, made) for each in (*names[:place], name, *names[place:])}
    return found


class CommandGroup(TyperGroup):
    """All commands: imported one by one when they are used, and not at all for `--help`."""

    def __init__(self, **attributes: Any) -> None:
        """Take what Typer gives a group."""
        super().__init__(**attributes)
        self._is_listing = False
        self.commands.update({name: TyperCommand(name, help=each.help) for name, each in commands().items()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or its placeholder in the list of commands; None if there is none."""
        if not self._is_listing and cmd_name in commands():
            return load_command(cmd_name)
        if error := installed_features().explain(cmd_name):
            raise typer.BadParameter(str(error))
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False


class _Subcommands(TyperGroup):
    """The commands of a group. One whose feature cannot be used is an error that names the feature."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None if there is none."""
        found = super().get_command(ctx, cmd_name)
        if found is None and (error := installed_features().explain(f"{self.name} {cmd_name}")):
            raise typer.BadParameter(str(error))
        return found


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command as Typer runs it."""
    found = _loaded(commands()[name], name)
    if added := _added_to(name):
        found.commands = _in_order(found.commands, added, lambda own, command: _loaded(command, own))
    return found


def _loaded(command: Command, name: str) -> Any:
    app = typer.Typer()
    app.add_typer(import_module(command.module).app)
    return typer.main.get_group(app).commands[name]


def command_group(name: str) -> typer.Typer:
    """Return an application for a group of commands."""
    return typer.Typer(name=name, cls=_Subcommands, help=commands()[name].help, no_args_is_help=True)
