"""Where a configuration file is read: what can be looked up there, and who is told of its secrets.

The same file is read by tasks of Airflow, which may ask it for connections; by the DAG processor and the page, which
must not; and by Spark drivers and people's commands, which cannot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from mirror_lib.config.secrets.airflow_values import AirflowLookups, EnvironmentLookups

#: Told of a setting that holds a secret: its key, its value, and what of the value came from providers.
Tell = Callable[[str, str, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the reader of a file has around it.

    Attributes:
        lookups: how `${airflow:...}` is resolved; None leaves all such variables as they are written.
        tell: called for every secret of the file before anything else is made of it.
    """

    lookups: AirflowLookups | None
    tell: Tell | None = None


_SURROUNDINGS: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


def surroundings() -> Surroundings:
    """Those that hold now; outside Airflow its environment variables are all there is to look into."""
    return _SURROUNDINGS.get() or Surroundings(EnvironmentLookups(os.environ))


@contextmanager
def reading_in(where: Surroundings) -> Iterator[None]:
    """Files that are read inside, by this thread, are read in these surroundings."""
    token = _SURROUNDINGS.set(where)
    try:
        yield
    finally:
        _SURROUNDINGS.reset(token)


@contextmanager
def without_lookups() -> Iterator[None]:
    """For readers that connect to no cluster: Airflow is asked for nothing, and no database either."""
    with reading_in(Surroundings(None)):
        yield


@contextmanager
def looking_only() -> Iterator[None]:
    """For people who look at a file: what is not known here stays as it is written."""
    if _SURROUNDINGS.get() is not None:
        yield
        return
    with reading_in(Surroundings(EnvironmentLookups(os.environ, needed=False))):
        yield
