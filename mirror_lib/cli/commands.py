"""The commands of `mirror`. The module of a command is imported when the command is used.

So each module imports its dependencies (Kafka clients, SQL) at its top, and `mirror --help` starts at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of commands, as `mirror --help` lists it."""

    #: It has a function `register`, which adds the command to a Typer application.
    module: str
    help: str


#: In the order of `mirror --help`.
COMMANDS: Mapping[str, Command] = {
    "config": Command(
        "mirror_lib.cli.config.commands", "Check and explain a properties file, or import another replicator's."
    ),
    "plan": Command(
        "mirror_lib.cli.plan",
        "Show what a run would copy now; changes nothing. Exit code 3 when a partition needs a person.",
    ),
    "run": Command(
        "mirror_lib.cli.run.command",
        "Copy what is new, then stop: what the flow's DAG does, without Airflow. Ctrl-C ends it.",
    ),
    "status": Command(
        "mirror_lib.cli.status", "Show the newest runs, or one run with its partitions; changes nothing."
    ),
    "verify": Command(
        "mirror_lib.cli.verify",
        "Compare the target with its source. Exit code 0: equal, 1: could not be verified, 3: different.",
    ),
    "topics": Command("mirror_lib.cli.sync.topics", "Create missing target topics and partitions."),
    "configs": Command("mirror_lib.cli.sync.configs", "Carry changed topic configs to the target."),
    "acls": Command("mirror_lib.cli.sync.acls", "Carry topic ACLs to the target, and list what the flow itself needs."),
    "groups": Command("mirror_lib.cli.sync.groups", "Checkpoints and committed offsets of consumer groups."),
    "heartbeat": Command("mirror_lib.cli.sync.heartbeat", "Write heartbeats, and check those that arrived."),
    "gaps": Command("mirror_lib.cli.repair.gaps", "Records that sources lost, and how to go on."),
    "position": Command("mirror_lib.cli.repair.position", "How far partitions are copied; setting it by hand."),
    "clusters": Command("mirror_lib.cli.repair.clusters", "Cluster ids that a flow's state is about."),
    "map": Command("mirror_lib.cli.repair.offset_map", "The exact offset map of a flow."),
    "translate": Command(
        "mirror_lib.cli.translate",
        "Translate offsets by the exact offset map: of a partition, a time, a group, or a Spark checkpoint folder.",
    ),
    "backfill": Command(
        "mirror_lib.cli.backfill", "Copies of a range, beside the flow: history, or what is to be copied again."
    ),
    "transform": Command("mirror_lib.cli.transform.commands", "What a flow does to records on their way."),
    "cutover": Command(
        "mirror_lib.cli.cutover", "Move writers and readers to the target, with a gate at every step, and back."
    ),
    "observe": Command(
        "mirror_lib.cli.observe",
        "Read both clusters once and note in the ledger how the flow stands, for `mirror metrics` and the page.",
    ),
    "metrics": Command(
        "mirror_lib.cli.metrics",
        "Print metrics of all flows in Prometheus' text format. Only the ledger is asked, never a cluster.",
    ),
    "spark": Command("mirror_lib.cli.spark", "What a Spark cluster needs to run the jobs."),
    "dev": Command("mirror_lib.cli.dev", "Run two local Kafka clusters, A and B."),
    "demo": Command(
        "mirror_lib.cli.demo", "Run the main job on this machine: brokers, input, Airflow, one flow, proof."
    ),
}


class CommandGroup(TyperGroup):
    """All commands: imported one by one when they are used, and not at all for `--help`."""

    def __init__(self, **attributes: Any) -> None:
        """Take what Typer gives a group."""
        super().__init__(**attributes)
        self._is_listing = False
        self.commands.update({name: TyperCommand(name, help=each.help) for name, each in COMMANDS.items()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or its placeholder in the list of commands; None if there is none."""
        if self._is_listing or cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        return load_command(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command as Typer runs it."""
    app = typer.Typer()
    import_module(COMMANDS[name].module).register(app)
    return typer.main.get_group(app).commands[name]
