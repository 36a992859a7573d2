"""What an audit has done so far, in a file of lines of JSON: an interrupted one continues from there.

All processes of an audit append to it. A line that was cut off by the end of a process is ignored.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field as Described
from pydantic import TypeAdapter, ValidationError

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.audit.account import Reached
from mirror_lib.features.audit.model import PartitionReport, TopicIds
from mirror_lib.limited_files import read_limited
from mirror_lib.private_files import open_log
from mirror_lib.topology.names import TopicPartition

#: Of a file that is read; a line of a partition with a million findings has 300 MB, and is not written.
_MOST_BYTES = 256 * 1024 * 1024
_MOST_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Scope:
    """What the lines after it are true of; the first line of a file."""

    #: Ids of the clusters.
    source: str | None
    target: str | None
    #: Epoch milliseconds.
    since: int | None
    read_committed: bool
    ignored_headers: tuple[str, ...]
    merged: bool
    ignore_times: bool = False
    same_offsets: bool = False
    version: Literal[1] = 1
    kind: Literal["scope"] = "scope"


@dataclass(frozen=True, slots=True)
class Place:
    """How far two partitions were compared."""

    source: TopicPartition
    target: TopicPartition
    reached: Reached
    ids: TopicIds = (None, None)
    kind: Literal["place"] = "place"


@dataclass(frozen=True, slots=True)
class Done:
    """A partition, or a topic that was compared by keys, that was compared to its end."""

    report: PartitionReport
    ids: TopicIds = (None, None)
    kind: Literal["done"] = "done"


_Line = Annotated[Scope | Place | Done, Described(discriminator="kind")]
_LINES: TypeAdapter[Scope | Place | Done] = TypeAdapter(_Line)
_Key = tuple[TopicPartition, TopicPartition]


@dataclass(frozen=True, slots=True)
class Journal:
    """The file."""

    path: Path

    def write(self, line: Scope | Place | Done) -> None:
        """Append a line.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        data = _LINES.dump_json(line) + b"\n"
        if len(data) > _MOST_LINE_BYTES:
            return
        try:
            descriptor = open_log(self.path)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be written: {error.strerror}.", action="Name another file with --resume."
            ) from error

    @property
    def since(self) -> int | None:
        """Epoch milliseconds from which on the audit of the file compares; None for all, or without an audit.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        lines = self._lines()
        scope = _parse(lines[0]) if lines else None
        return scope.since if isinstance(scope, Scope) else None

    def _lines(self) -> list[bytes]:
        try:
            return read_limited(self.path, _MOST_BYTES).splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be read: {error.strerror}.", action="Name another file with --resume."
            ) from error

    def begin(self, scope: Scope) -> Earlier:
        """Return what the file has of an audit of this scope; begin it if it is new.

        Raises:
            ConfigurationError: the file cannot be read or written, is none of an audit, or is of another one.
        """
        lines = self._lines()
        if not lines:
            self.write(scope)
            return Earlier()
        first, earlier = _parse(lines[0]), Earlier()
        if not isinstance(first, Scope):
            raise ConfigurationError(
                f"{self.path} is not the file of an audit.", action="Name a new file with --resume."
            )
        if first != scope:
            raise ConfigurationError(
                f"{self.path} belongs to an audit of other clusters or with other options.",
                action="Repeat the command of that audit, or name a new file with --resume.",
            )
        for data in lines[1:]:
            line = _parse(data)
            if isinstance(line, Done):
                earlier.done[line.report.source, line.report.target] = line
            elif isinstance(line, Place):
                earlier.places[line.source, line.target] = line
        return earlier


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was done before."""

    done: dict[_Key, Done] = field(default_factory=dict)
    places: dict[_Key, Place] = field(default_factory=dict)

    def report(self, source: TopicPartition, target: TopicPartition, ids: TopicIds) -> PartitionReport | None:
        """The report of a pair whose topics have these ids; None if there is none of these topics."""
        found = self.done.get((source, target))
        return None if found is None or found.ids != ids else found.report

    def place(self, source: TopicPartition, target: TopicPartition, ids: TopicIds) -> Reached | None:
        """How far a pair whose topics have these ids was compared; None if it was not, or is of other topics."""
        found = self.places.get((source, target))
        return None if found is None or found.ids != ids else found.reached


def _parse(data: bytes) -> Scope | Place | Done | None:
    try:
        return _LINES.validate_json(data)
    except ValidationError:
        return None
