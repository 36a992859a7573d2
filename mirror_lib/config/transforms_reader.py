"""Where the transforms of a file's flows come from: the feature `transforms`, if it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from mirror_lib.config.data_plane import UNCHANGED, FlowChains
from mirror_lib.config.file.derive import ENABLED, FileSettings, FlowSettings, Settings
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.model import Provenance
from mirror_lib.config.settings.keys_of_transforms import (
    CONNECT_TRANSFORMS,
    CONVERTERS,
    OWN_TRANSFORMS,
    PREDICATES,
    is_connect_key,
    is_transform_key,
)
from mirror_lib.errors import ConfigurationError
from mirror_lib.feature import Hook
from mirror_lib.installed_features import provided
from mirror_lib.problems import Problem

#: Every key that concerns transforms contains one of these.
_PARTS = ("transform", "predicates", ".converter")


class TransformsReader(Protocol):
    """Reads the transforms of the flows of a file, one after the other."""

    @property
    def sources(self) -> tuple[FileStamp, ...]:
        """The further files that it read, as they were before."""

    def problems(self) -> tuple[Problem, ...]:
        """Return all problems of the flows that were read, and of transforms that no flow uses."""

    def read(self, settings: FlowSettings) -> FlowChains:
        """Return the transforms of a flow; incomplete if there is an error among its problems."""


def transforms_reader(file: FileSettings, folder: Path) -> TransformsReader:
    """Return the reader of a file's transforms.

    Args:
        folder: of the properties file, where relative paths begin.
    """
    # Most files have none: for these, the features are not even listed.
    if not any(part in key for key in file for part in _PARTS):
        return _Absent()
    try:
        reader: TransformsReader = provided(Hook.TRANSFORMS, by="transforms")(file, folder)
    except ConfigurationError as error:
        return _Absent(error)
    return reader


class _Absent:
    """Finds no transforms, and an error at each setting that asks for some."""

    def __init__(self, why: ConfigurationError | None = None) -> None:
        self._why = why
        self._problems: list[Problem] = []

    @property
    def sources(self) -> tuple[FileStamp, ...]:
        return ()

    def problems(self) -> tuple[Problem, ...]:
        return tuple(dict.fromkeys(self._problems))

    def read(self, settings: FlowSettings) -> FlowChains:
        enabled = settings.connector.get(ENABLED)
        if self._why is None or enabled is None or enabled.value.strip().lower() != "true":
            return UNCHANGED
        for name in (OWN_TRANSFORMS, CONNECT_TRANSFORMS):
            setting = settings.connector.get(name)
            if setting is not None and setting.value.strip():
                what, action = self._why.what.rstrip("."), self._why.action.rstrip(".").replace("Install", "install", 1)
                self._problems.append(Problem.error(f"{setting.key}: it {what}", setting, action))
        return UNCHANGED


def own_settings(settings: FlowSettings) -> dict[str, Provenance]:
    """Return the effective settings of `mirror.transforms` of a flow, by names without a prefix."""
    return {name: setting for name, setting in settings.connector.items() if is_transform_key(name)}


def connect_settings(settings: FlowSettings, file: FileSettings) -> dict[str, Provenance]:
    """Return the effective settings of the transforms and converters of a flow, by names without a prefix.

    A converter that the connector does not set is the worker's, with all its settings (`Worker.startTask` and
    `Plugins.newConverter`); the worker has the settings of the target cluster, overridden by those of the top level.
    """
    connector = settings.connector
    found = {name: setting for name, setting in connector.items() if name.startswith((CONNECT_TRANSFORMS, PREDICATES))}
    worker = {**file.cluster(settings.flow.target), **file.of_all_workers}
    for converter in CONVERTERS:
        found |= _under(connector if converter in connector else worker, converter)
    return {name: setting for name, setting in found.items() if is_connect_key(name)}


def _under(settings: Settings, prefix: str) -> Mapping[str, Provenance]:
    return {name: setting for name, setting in settings.items() if name.startswith(prefix)}


def transform_settings(settings: FlowSettings, file: FileSettings) -> Mapping[str, Provenance]:
    """Return all effective settings of the transforms of a flow, by names without a prefix."""
    return own_settings(settings) | connect_settings(settings, file)
