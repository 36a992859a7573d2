"""A job for Spark's Python workers, which unpickle it only if they have the same classes.

Frozen classes with slots are unpickled by position: workers of another version would silently put values into wrong
fields. So a job is sent as bytes with a stamp, and the stamp is compared before the bytes are unpickled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from mirror_lib import __version__
from mirror_lib.cluster.auth import KerberosLogin, OAuthLogin, PasswordLogin
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.printable_logs import make_logs_printable

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
#: Classes that every job may hold without naming them in a type: the implementations of `Login`, and `Where`.
_COMMON: tuple[type, ...] = (PasswordLogin, OAuthLogin, KerberosLogin, Where)


def seal(job: object, classes: tuple[type, ...]) -> tuple[str, bytes]:
    """The stamp and the job, for `unseal`.

    Args:
        classes: classes of the job and of its results; the classes of their fields are included.
    """
    return stamp(classes), pickle.dumps(job, pickle.HIGHEST_PROTOCOL)


def unseal(sealed: str, job: bytes, classes: tuple[type, ...]) -> Any:
    """Return the job.

    Raises:
        ConfigurationError: another version of this package has sealed it; it was not unpickled.
    """
    ours = stamp(classes)
    if sealed != ours:
        raise other_version(workers=ours, driver=sealed)
    return pickle.loads(job)


def unseal_for(
    classes: tuple[type, ...],
) -> Callable[
    [Callable[Concatenate[Any, _Parameters], _Result]], Callable[Concatenate[str, bytes, _Parameters], _Result]
]:
    """Return a decorator of tasks: the task takes stamp and sealed job, and works on the job.

    Its first call raises `ConfigurationError` if the driver has another version of this package.
    """

    def decorate(
        task: Callable[Concatenate[Any, _Parameters], _Result],
    ) -> Callable[Concatenate[str, bytes, _Parameters], _Result]:
        @wraps(task)
        def run(stamp: str, sealed: bytes, /, *given: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            # In a worker nobody has configured the log.
            make_logs_printable()
            return task(unseal(stamp, sealed, classes), *given, **named)

        return run

    return decorate


def other_version(*, workers: str, driver: str, where: Where = Where()) -> ConfigurationError:  # noqa: B008 - a value
    """The error, with what to do about it. `spark_jobs.failures` finds its text in Spark's error."""
    return ConfigurationError(
        f"Spark's Python workers have batch-mirror {workers}, and the job's driver has {driver}.",
        where=where,
        action="Install the driver's version into the Python of Spark's executors, or of the Spark Connect server, and "
        "start the server again; rebuild a packed environment with `mirror spark pack`.",
    )


@cache
def stamp(classes: tuple[type, ...]) -> str:
    """The version of this package, and a digest of `fields_of` these classes for changes within a version."""
    text = "\n".join(fields_of((*classes, *_COMMON)))
    return f"{__version__}/{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def fields_of(classes: Sequence[type]) -> list[str]:
    """A line for each of these classes and of the classes of their fields: its name, and its fields in order."""
    found: dict[type, str] = {}
    names = {each.__name__: each for each in classes}
    todo: list[Any] = list(classes)
    while todo:
        kind = todo.pop()
        todo += get_args(kind)
        if not isinstance(kind, type) or kind in found or not _has_fields(kind):
            continue
        name = f"{kind.__module__}.{kind.__qualname__}"
        if issubclass(kind, Enum):
            found[kind] = f"{name} {[(each.name, each.value) for each in kind]}"
            continue
        # Some modules import a name only for type checking.
        hints = get_type_hints(kind, localns=names)
        fields = [(field, str(hints[field])) for field in _names(kind)]
        found[kind] = f"{name} {fields}"
        todo += hints.values()
    return sorted(found.values())


def _has_fields(kind: type) -> bool:
    return issubclass(kind, Enum) or bool(_names(kind))


def _names(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    # Of a named tuple, or of a pydantic model.
    return tuple(getattr(kind, "_fields", ())) or tuple(getattr(kind, "model_fields", ()))
