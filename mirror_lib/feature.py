"""The manifest of a feature: plain data and names of modules, so reading it imports nothing.

A feature is a package with a module `manifest` that holds a `Feature`, and an entry point in the group
`batch_mirror.features` that names it: CONTRIBUTING.md, "Add a feature".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: Names of features and of kinds of DAGs; those of commands may have the name of a group before them.
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_COMMAND = re.compile(rf"{_NAME.pattern}(?: {_NAME.pattern})?")


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of commands."""

    #: Its `app` is a Typer application with the command.
    module: str
    #: As `mirror --help` lists it; not of a command in a group, which is imported to list it.
    help: str = ""
    #: The command after which it is listed, in its group; "": at the end.
    after: str = ""


class Hook(StrEnum):
    """Places of the core at which features take part: it calls what they name there, with what is said here."""

    #: `(flow, name, *, ledger, make_runner, options, max_bytes)`: run a backfill in the job of the flow; a `RunReport`.
    BACKFILL = "backfill"
    #: Operator of the task that copies a flow with `mirror.airflow.deferrable`; a `ReplicateOperator`.
    DEFERRED_COPY = "deferred-copy"
    #: `(command, environment, stack)`: start the driver of a job on a Spark Connect server; a `StartedDriver`, None if
    #: the task is to start it itself.
    DRIVER = "driver"
    #: `(bins, rounds)`: the `observe.Expectation` of a round from earlier rounds; None if they do not show one.
    EXPECTATION = "expectation"
    #: `(flow, plan, ledger, *, run_begins, connected)`: the forecast of a plan (`relay.health.next_run.FlowForecast`).
    FORECAST = "forecast"
    #: The class that reads logins by Kerberos (`cluster.auth.sasl.LoginReader`).
    KERBEROS_LOGIN = "kerberos-login"
    #: `(flow, ledger, *, run_id)`: store the state of a flow after its run (`relay.health.after_run.FlowState`).
    OBSERVE = "observe"
    #: `(flow, config_path)`: the schedule of a DAG whose runs new records start.
    ON_NEW_RECORDS = "on-new-records"
    #: `(flow)`, a `FlowConfig`: called by Airflow's task `preflight`; returns lines for its log; an error fails it.
    PREFLIGHT = "preflight"
    #: `(flow, plan, ledger)`: a function of `Output` that adds to what `mirror plan` shows.
    PLAN = "plan"
    #: `(spark, part)`: copy the partitions of one chain as rows (`relay.planning.ChainJob`); their `PartitionResult`s.
    ROW_COPY = "row-copy"
    #: The class that reads logins by tokens (`cluster.auth.sasl.LoginReader`).
    TOKEN_LOGIN = "token-login"
    #: `(file, folder)`: the reader of a file's transforms (`config.transforms_reader.TransformsReader`).
    TRANSFORMS = "transforms"


@dataclass(frozen=True, slots=True)
class Feature:
    """What one feature adds."""

    name: str
    #: One sentence, for `mirror features`.
    summary: str
    #: By their names; `gaps delete-keys` is one of the group `gaps`.
    commands: Mapping[str, Command] = field(default_factory=dict)
    #: Kind of DAGs -> `module:builder`, called with the configuration files.
    dags: Mapping[str, str] = field(default_factory=dict)
    #: Place in the core -> `module:function`.
    hooks: Mapping[Hook, str] = field(default_factory=dict)
    #: What it imports and the core does not need, as Python names it: packages, and features that it builds on.
    imports: tuple[str, ...] = ()
    #: The extra that brings them: `batch-mirror[page]`.
    extra: str = ""

    def __post_init__(self) -> None:
        """Check what all commands and DAG files read, so that a wrong manifest fails alone.

        Raises:
            TypeError: a part is of another type.
            ValueError: a name has other characters.
        """
        _require(str, self.name, self.summary, self.extra)
        _require(Mapping, self.commands, self.dags, self.hooks)
        _require(tuple, self.imports)
        _require(Command, *self.commands.values())
        _require(str, *self.commands, *self.dags, *self.dags.values(), *self.hooks.values(), *self.imports)
        _require(Hook, *self.hooks)
        for pattern, names in ((_NAME, (self.name, *self.dags)), (_COMMAND, self.commands)):
            for name in names:
                if not pattern.fullmatch(name):
                    raise ValueError(f"{name!r} is no name: use small letters, digits, hyphens and underscores")


def _require(kind: type, *parts: object) -> None:
    for part in parts:
        if not isinstance(part, kind):
            raise TypeError(f"{part!r} is no {kind.__name__}")
