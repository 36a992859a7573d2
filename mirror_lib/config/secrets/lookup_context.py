"""The context in which a configuration file is read: available lookups, and the receiver of its secrets.

The same file is read by tasks of Airflow, which may look up its connections; by the DAG processor and the page, which
must not; and by Spark drivers and commands, which cannot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from mirror_lib.config.secrets.airflow_values import AirflowLookups, EnvironmentLookups

#: Called with a secret setting: its key, its value, and the parts of the value that came from providers.
OnSecret = Callable[[str, str, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a reader of a file.

    Attributes:
        lookups: resolves `${airflow:...}`; None leaves all such variables as written.
        on_secret: called for every secret of the file before anything else is made from it.
    """

    lookups: AirflowLookups | None
    on_secret: OnSecret | None = None


_SURROUNDINGS: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


def surroundings() -> Surroundings:
    """Return the present context; outside Airflow only its environment variables are looked up."""
    return _SURROUNDINGS.get() or Surroundings(EnvironmentLookups(os.environ))


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
    with reading_in(Surroundings(None)):
        yield


@contextmanager
def looking_only() -> Iterator[None]:
    """For commands that show a file: unknown values stay as written."""
    if _SURROUNDINGS.get() is not None:
        yield
        return
    with reading_in(Surroundings(EnvironmentLookups(os.environ, needed=False))):
        yield
