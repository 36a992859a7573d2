"""The manifest of a feature: plain data and names of modules, so reading it imports nothing.

A feature is a package with a module `manifest` that holds a `Feature`, and an entry point in the group
`batch_mirror.features` that names it: CONTRIBUTING.md, "Add a feature".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

#: Names of features and of kinds of DAGs; those of commands may have the name of a group before them.
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PLACE = re.compile(r"[\w.]+:\w+")
_SETTING = re.compile(r"mirror(\.[a-z0-9-]+)+")
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


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of flows in the properties file, which may also be at its top level."""

    #: Begins with `mirror.`.
    name: str
    meaning: str
    default: str = ""
    #: `string`, `boolean`, `int`, `double` or `list`.
    type: str = "string"
    #: `module:function` that takes the text; its `ValueError` completes "must be".
    check: str = ""
    #: The setting after which it is listed; "": at the end.
    after: str = ""

    def of(self, flow: FlowOfFeatures) -> str:
        """Return the effective text in a `FlowConfig`."""
        return flow.of_features.get(self.name, self.default)


class FlowOfFeatures(Protocol):
    """The part of a `FlowConfig` that features read."""

    @property
    def of_features(self) -> Mapping[str, str]:
        """The texts of the settings of features that the file has."""


class Hook(StrEnum):
    """Places of the core at which features take part: it calls what they name there, with what is said here."""

    #: The class of the provider of Airflow's values (`config.secrets.providers.ConfigProvider`).
    AIRFLOW_SECRETS = "airflow-secrets"
    #: `(flow, topology, clusters, facts, ledger)`: what records that were written after a cutover mean for a flow
    #: (`planning.AfterCutover`).
    AFTER_CUTOVER = "after-cutover"
    #: `(flow, name, *, ledger, make_runner, options, max_bytes)`: run a backfill in the job of the flow; a `RunReport`.
    BACKFILL = "backfill"
    #: Operator of the task that copies a flow with `mirror.airflow.deferrable`; a `ReplicateOperator`.
    DEFERRED_COPY = "deferred-copy"
    #: `(ledger, run_id)`: a context in which a driver without a task shows that it is alive; its value takes the result
    #: of the job (`ended_with(exit_code, report)`).
    DETACHED = "detached"
    #: `(command, environment, stack)`: start the driver of a job on a Spark Connect server; a `StartedDriver`, None if
    #: the task is to start it itself.
    DRIVER = "driver"
    #: `(bins, rounds)`: the `observe.Expectation` of a round from earlier rounds; None if they do not show one.
    EXPECTATION = "expectation"
    #: `(flow, plan, ledger, *, run_begins, connected)`: the forecast of a plan (`copy.health.next_run.FlowForecast`).
    FORECAST = "forecast"
    #: The class that reads logins by Kerberos (`cluster.auth.sasl.LoginReader`).
    KERBEROS_LOGIN = "kerberos-login"
    #: `(flow, topics, source, target)`: prepare new partitions of the target for `mirror.offsets = same`; `topics` are
    #: target topics by source topic, the others admin clients. Returns notices.
    NEW_PARTITIONS = "new-partitions"
    #: `(flow, ledger, *, run_id)`: store the state of a flow after its run (`copy.health.after_run.FlowState`).
    OBSERVE = "observe"
    #: `(flow, config_path)`: the schedule of a DAG whose runs new records start.
    ON_NEW_RECORDS = "on-new-records"
    #: `(flow)`, a `FlowConfig`: called by Airflow's task `preflight` (not by `mirror run`) after both clusters have
    #: answered; returns a tuple of lines for its log, `()` for none. `ConfigurationError` refuses the flow, and is not
    #: retried; a check that cannot be imported refuses it, too.
    PREFLIGHT = "preflight"
    #: `(flow, plan, ledger)`: a function of `Output` that adds to what `mirror plan` shows.
    PLAN = "plan"
    #: `(flow, job, opened, results, ledger)`: store where a round has written records that transforms route; `opened`
    #: are its `OpenPartition`s by source.
    ROUTES = "routes"
    #: `(spark, part)`: copy the partitions of one chain as rows (`planning.ChainJob`); their `PartitionResult`s.
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
    settings: tuple[Setting, ...] = ()
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
        _require(tuple, self.imports, self.settings)
        _require(Setting, *self.settings)
        _require(Command, *self.commands.values())
        _require(str, *self.commands, *self.dags, *self.dags.values(), *self.hooks.values(), *self.imports)
        _require(Hook, *self.hooks)
        settings = [each.name for each in self.settings]
        letters = "use small letters, digits, hyphens and underscores"
        for pattern, names, todo in (
            (_NAME, (self.name, *self.dags), letters),
            (_COMMAND, self.commands, letters),
            (_SETTING, settings, f"begin with `mirror.`, and {letters}"),
            (_PLACE, (*self.dags.values(), *self.hooks.values()), "write `module:function`"),
        ):
            for name in names:
                if not pattern.fullmatch(name):
                    raise ValueError(f"{name!r} is no name: {todo}")


def _require(kind: type, *parts: object) -> None:
    for part in parts:
        if not isinstance(part, kind):
            raise TypeError(f"{part!r} is no {kind.__name__}")
