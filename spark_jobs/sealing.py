"""A job for Spark's Python workers, which unpickle it only if they have the same classes.

Frozen classes with slots are unpickled by position: workers of another version would silently put values into wrong
fields. So a job is sent as bytes with a stamp, and the stamp is compared before the bytes are unpickled. It names the
modules of all classes in the job and in its results, with a digest of their sources: a worker imports nothing for it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import pickle
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from mirror_lib import __version__
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.printable_logs import make_logs_printable

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
#: Results may hold errors.
_COMMON: tuple[type, ...] = (MirrorError,)


def seal(job: object, results: tuple[type, ...] = ()) -> tuple[str, bytes]:
    """The stamp and the job, for `unseal`.

    Args:
        results: classes of the results that are not in the job; of those of one module, one.
    """
    data = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
    return stamp({*modules_in(data), *_modules_of((*results, *_COMMON))}), data


def unseal(sealed: str, job: bytes) -> Any:
    """Return the job.

    Raises:
        ConfigurationError: another version of this package has sealed it; it was not unpickled.
    """
    ours = stamp(filter(None, sealed.partition(" ")[2].split(",")))
    if sealed != ours:
        raise other_version(workers=ours.partition(" ")[0], driver=sealed.partition(" ")[0])
    return pickle.loads(job)


def unsealed(
    task: Callable[Concatenate[Any, _Parameters], _Result],
) -> Callable[Concatenate[str, bytes, _Parameters], _Result]:
    """A decorator of tasks: the task takes stamp and sealed job, and works on the job.

    Its first call raises `ConfigurationError` if the driver has another version of this package.
    """

    @wraps(task)
    def run(stamp: str, sealed: bytes, /, *given: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        # In a worker nobody has configured the log.
        make_logs_printable()
        return task(unseal(stamp, sealed), *given, **named)

    return run


def other_version(*, workers: str, driver: str, where: Where = Where()) -> ConfigurationError:  # noqa: B008 - a value
    """The error, with what to do about it. `spark_jobs.failures` finds its text in Spark's error."""
    return ConfigurationError(
        f"Spark's Python workers have batch-mirror {workers}, and the job's driver has {driver}.",
        where=where,
        action="Install the driver's version into the Python of Spark's executors, or of the Spark Connect server, and "
        "start the server again; rebuild a packed environment with `mirror spark pack`.",
    )


def stamp(modules: Iterable[str]) -> str:
    """The version of this package, a digest of the sources of these modules, and their names."""
    names = sorted(modules)
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name} {_source_digest(name)}\n".encode())
    return f"{__version__}/{digest.hexdigest()[:12]} {','.join(names)}"


def modules_in(data: bytes) -> set[str]:
    """The modules of the classes in pickled bytes of this process, without those of Python."""
    found = _Classes(io.BytesIO(data))
    found.load()
    return _modules_of(found.kinds)


class _Classes(pickle.Unpickler):
    """Notes the classes that it meets; each once."""

    def __init__(self, data: io.BytesIO) -> None:
        super().__init__(data)
        self.kinds: list[Any] = []

    def find_class(self, module: str, name: str, /) -> Any:
        """The class, noted."""
        kind = super().find_class(module, name)
        self.kinds.append(kind)
        return kind


def _modules_of(kinds: Iterable[Any]) -> set[str]:
    """The modules in which these classes, and those that they inherit fields from, are defined."""
    every = {base for kind in kinds for base in (kind.__mro__ if isinstance(kind, type) else (kind,))}
    names = {str(each.__module__) for each in every if each.__module__}
    return {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}


def _source_digest(module: str) -> str:
    """A digest of a module's source; empty if this Python does not have it."""
    try:
        found = importlib.util.find_spec(module)
        origin = (found and found.origin) or ""
        source = found.loader.get_data(origin) if found and origin.endswith(".py") else None  # type: ignore[union-attr]
    except (ImportError, OSError, AttributeError):
        source = None
    return "" if source is None else hashlib.sha256(source).hexdigest()
