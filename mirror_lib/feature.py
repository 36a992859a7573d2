"""The manifest of a feature: plain data and names of modules, so reading it imports nothing.

A feature is a package with a module `manifest` that holds a `Feature`, and an entry point in the group
`batch_mirror.features` that names it: docs/architecture.md, "Add a feature".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
class Feature:
    """What one feature adds."""

    name: str
    #: One sentence, for `mirror features`.
    summary: str
    #: By their names; `gaps delete-keys` is one of the group `gaps`.
    commands: Mapping[str, Command] = field(default_factory=dict)
    #: Kind of DAGs -> `module:builder`, called with the configuration files.
    dags: Mapping[str, str] = field(default_factory=dict)
    #: What the core asks features for -> its `module:name`: `transforms` makes a reader of a file's transforms
    #: (`mirror_lib.config.transforms_reader`), `row-copy` copies partitions as rows (`spark_jobs.replicate`).
    provides: Mapping[str, str] = field(default_factory=dict)
    #: Packages that it imports and the core does not need, as Python names them.
    imports: tuple[str, ...] = ()
    #: The extra that brings them: `batch-mirror[page]`.
    extra: str = ""
