"""The features of this environment, the project's own and those of other packages, by their entry points.

Used by commands, DAGs and drivers; a copy task never imports it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from mirror_lib.errors import ConfigurationError
from mirror_lib.feature import Feature, Hook

_log = logging.getLogger(__name__)

#: Entry points with a `Feature` each.
GROUP = "batch_mirror.features"


@dataclass(frozen=True, slots=True)
class FailedFeature:
    """A feature that cannot be used here; everything else works."""

    name: str
    why: str
    action: str
    #: What it would add, if its manifest could be read.
    feature: Feature | None = None


@dataclass(frozen=True, slots=True)
class Features:
    """What is installed, in the order of the names."""

    ready: tuple[Feature, ...] = ()
    failed: tuple[FailedFeature, ...] = ()

    def at(self, hook: Hook, *, all_needed: bool = False) -> list[Callable[..., Any]]:
        """Import and return what the features name at a place of the core.

        Args:
            all_needed: refuse what cannot be imported, as a check that has not passed; else it is only logged.

        Raises:
            ConfigurationError: one that is needed cannot be imported.
        """
        found = []
        for each in self.ready:
            if hook in each.hooks:
                try:
                    found.append(imported(each.hooks[hook]))
                except Exception as error:
                    why = f"the feature {each.name} cannot be used: {type(error).__name__}: {error}"
                    if all_needed:
                        raise ConfigurationError(f"{why}.", action="Repair or remove its package.") from error
                    _log.error("%s", why)
        return found

    def explain(self, command: str) -> ConfigurationError | None:
        """Return why a command of a feature cannot be used here; None if no feature has it.

        Args:
            command: as it is typed, `gaps delete-keys` if it is in a group.
        """
        for each in self.failed:
            if each.feature is not None and command in each.feature.commands:
                return ConfigurationError(
                    f"mirror {command} needs the feature {each.name}: {each.why}", action=each.action
                )
        return None


def imported(place: str) -> Callable[..., Any]:
    """Import what a manifest names as `module:function`."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


@cache
def installed_features() -> Features:
    """Return the features of this environment; without those whose code is missing."""
    return read_features(sorted(entry_points(group=GROUP), key=lambda each: each.name))


def provided(hook: Hook, *, by: str, extra: str | None = None) -> Callable[..., Any]:
    """Return what a feature names at a place that the core cannot do without.

    Args:
        by: the project's own feature.
        extra: the one that brings what it needs, by default of its name; "": it needs nothing else.

    Raises:
        ConfigurationError: no installed feature names anything that can be used; its text begins with the verb.
    """
    features = installed_features()
    package = "batch-mirror" if extra == "" else f"batch-mirror[{extra or by}]"
    if (place := next((each.hooks[hook] for each in features.ready if hook in each.hooks), None)) is not None:
        try:
            return imported(place)
        except ImportError as error:
            raise ConfigurationError(
                f"needs the feature {by}, which cannot be imported: {error}.",
                action=f"Install {package} again.",
            ) from error
    if (failed := next((each for each in features.failed if each.name == by), None)) is not None:
        raise ConfigurationError(f"needs the feature {by}: {failed.why}.", action=failed.action)
    raise ConfigurationError(
        f"needs the feature {by}, which is not installed.",
        action=f"Install {package}{' with its features' if extra == '' else ''}.",
    )


def read_features(points: list[EntryPoint]) -> Features:
    """Return the features that these entry points name."""
    ready: dict[str, Feature] = {}
    failed: list[FailedFeature] = []
    for point in points:
        found = _read(point)
        if isinstance(found, Feature) and found.name in ready:
            found = _failed(point, f"another feature has the name {found.name}", feature=found)
        if isinstance(found, Feature):
            ready[found.name] = found
        elif found is not None:
            failed.append(found)
    return Features(tuple(ready.values()), tuple(failed))


def _read(point: EntryPoint) -> Feature | FailedFeature | None:
    try:
        feature = point.load()
    except ModuleNotFoundError as error:
        if error.name is not None and f"{point.module}.".startswith(f"{error.name}."):
            # An installation without its code: the core alone.
            return None
        return _failed(point, f"{type(error).__name__}: {error}")
    except (Exception, SystemExit) as error:
        return _failed(point, f"{type(error).__name__}: {error}")
    if not isinstance(feature, Feature):
        return _failed(point, f"{point.value} is not a Feature but a {type(feature).__name__}")
    missing = [name for name in feature.imports if not _is_there(name)]
    if missing:
        action = f"Install batch-mirror[{feature.extra}]." if feature.extra else "Install what it needs."
        return FailedFeature(feature.name, f"it needs {', '.join(missing)}, which is not installed", action, feature)
    return feature


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        # The package of a package.
        return False


def _failed(point: EntryPoint, why: str, feature: Feature | None = None) -> FailedFeature:
    package = point.dist.name if point.dist is not None else point.module
    return FailedFeature(point.name, why, f"Repair or remove the package {package}.", feature)
