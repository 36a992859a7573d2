"""The context in which a configuration file is read: which values are looked up, and the receiver of its secrets.

The same file is read by tasks of Airflow, which may look up its connections; by the DAG processor and the page, which
must not; and by Spark drivers and commands, which cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

#: Passes values from a task of Airflow to the Spark driver that it starts: the JSON of `TaskValues.found`.
HANDED_OVER: Final = "MIRROR_AIRFLOW_VALUES"
#: Called with a secret setting: its key, its value, and the parts of the value that came from providers.
OnSecret = Callable[[str, str, Sequence[str]], None]


class Lookups(Enum):
    """Lookups outside of tasks, of values that only connections to clusters need (`${airflow:...}`)."""

    #: A missing value is an error.
    NEEDED = auto()
    #: A missing value stays as written.
    AT_HAND = auto()
    #: All such variables stay as written.
    NONE = auto()


@dataclass(frozen=True, slots=True, repr=False)
class TaskValues:
    """The values that a task of Airflow has looked up."""

    #: By their names in the file.
    found: dict[str, str] = field(default_factory=dict)
    #: By their ids; for further fields of the same connection.
    connections: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a reader of a file.

    Attributes:
        lookups: outside of tasks.
        task: of a task, which looks up every value.
        on_secret: called for every secret of the file before anything else is made from it.
    """

    lookups: Lookups = Lookups.NEEDED
    task: TaskValues | None = None
    on_secret: OnSecret | None = None


_SURROUNDINGS: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


def surroundings() -> Surroundings:
    """Return the present context; outside Airflow only its environment variables are looked up."""
    return _SURROUNDINGS.get() or Surroundings()


@contextmanager
def reading_in(where: Surroundings) -> Iterator[None]:
    """Within this context, this thread reads files with these surroundings."""
    token = _SURROUNDINGS.set(where)
    try:
        yield
    finally:
        _SURROUNDINGS.reset(token)


@contextmanager
def without_lookups() -> Iterator[None]:
    """For readers that connect to no cluster: neither Airflow nor a database is accessed."""
    with reading_in(Surroundings(Lookups.NONE)):
        yield


@contextmanager
def looking_only() -> Iterator[None]:
    """For commands that show a file: unknown values stay as written."""
    with reading_in(_SURROUNDINGS.get() or Surroundings(Lookups.AT_HAND)):
        yield
