"""The transforms of the flows of a file: each text is read once for all flows that have it, and every problem is
reported at its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mirror_lib.config.file.derive import TOP_LEVEL, FileSettings, FlowSettings, Settings
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.model import Fencing
from mirror_lib.config.settings.keys_of_transforms import (
    CONNECT_TRANSFORMS,
    OWN_TRANSFORMS,
    PREFIX,
    SUB_KEYS,
    is_connect_key,
    is_transform_key,
)
from mirror_lib.config.transforms_reader import connect_settings, own_settings
from mirror_lib.features.transforms.file_settings.connect_transforms import converter_problems, parse_connect
from mirror_lib.features.transforms.file_settings.router_renames import router_problems
from mirror_lib.features.transforms.model import NO_TRANSFORMS, Determinism, FlowTransforms, Transform
from mirror_lib.features.transforms.settings import listed_names, parse_transforms, statement_files, unlisted_problems
from mirror_lib.problems import Problem, Severity

_NOT_SHOWN = "it cannot be used; the reason is not shown, because its value comes from a config provider"
_AT_LEAST_ONCE = (
    "a record that is copied again after a failure may have another result, so its topics are copied at least once, "
    "not exactly once, unless {target}.exactly.once.source.support=enabled writes them in transactions"
)
_SUPPORT, _FENCING = "exactly.once.source.support", "mirror.fencing"


class _Text(NamedTuple):
    """A setting without its place in the file."""

    name: str
    value: str
    #: It came from a config provider, at least in part.
    hidden: bool
    #: It is set at the top level, for all flows.
    shared: bool


class _Parsed(NamedTuple):
    transforms: FlowTransforms
    #: Their keys are without the prefix of a flow.
    problems: tuple[Problem, ...]


class TransformsReader:
    """Reads the transforms of the flows of a file, one after the other; only flows that copy have any."""

    def __init__(self, file: FileSettings, folder: Path) -> None:
        """Nothing is read yet.

        Args:
            folder: of the properties file, where relative paths begin.
        """
        self._file = file
        self._folder = folder
        self._known: dict[tuple[_Text, ...], _Parsed] = {}
        self._stamps: dict[Path, FileStamp] = {}
        self._listed: set[str] = set()
        self._read_any = False
        self._problems: list[Problem] = []

    @property
    def sources(self) -> tuple[FileStamp, ...]:
        """The files with SELECT statements, as they were before they were read."""
        return tuple(self._stamps.values())

    def problems(self) -> tuple[Problem, ...]:
        """Return all problems of the flows that were read, and of transforms that no flow uses."""
        if not self._read_any:
            return ()
        unused = unlisted_problems((key for key in self._file if is_transform_key(key)), self._listed)
        placed = (each.model_copy(update={"line": self._file[each.key].line}) for each in unused if each.key)
        return (*self._problems, *placed)

    def read(self, settings: FlowSettings) -> FlowTransforms:
        """Return the transforms of a flow; incomplete if there is an error among its problems."""
        enabled = settings.connector.get("enabled")
        if enabled is None or enabled.value.strip().lower() != "true":
            return NO_TRANSFORMS
        self._read_any = True
        connect = connect_settings(settings, self._file)
        effective = own_settings(settings) | connect
        listed = effective.get(OWN_TRANSFORMS)
        self._listed |= set(listed_names("" if listed is None else listed.value))
        texts = tuple(
            _Text(name, setting.value, setting.written is not None, setting.origin == TOP_LEVEL)
            for name, setting in effective.items()
        )
        found = self._known.get(texts)
        if found is None:
            found = self._known[texts] = self._parse(texts)
        places = _Places(settings, effective)
        self._problems += (places.locate(each) for each in found.problems)
        self._problems += converter_problems(settings, connect, self._file)
        self._problems += (places.locate(each) for each in router_problems(settings, found.transforms.smt))
        if not _in_transactions(settings):
            self._problems += _not_deterministic(found.transforms, places)
        elif found.transforms:
            self._problems += _without_ids(settings)
        return found.transforms

    def _parse(self, texts: tuple[_Text, ...]) -> _Parsed:
        values = {text.name: text.value for text in texts}
        for path in statement_files(values, self._folder):
            self._stamps.setdefault(path, FileStamp.of(path))
        transforms, problems = parse_transforms(
            values,
            hidden={text.name for text in texts if text.hidden},
            shared={text.name for text in texts if text.shared},
            folder=self._folder,
        )
        chain, more = parse_connect({name: text for name, text in values.items() if is_connect_key(name)})
        return _Parsed(replace(transforms, smt=chain), (*problems, *more))


def _in_transactions(settings: FlowSettings) -> bool:
    support = settings.worker.get(_SUPPORT)
    return support is not None and support.value.strip().lower() == "enabled"


def _without_ids(settings: FlowSettings) -> Iterator[Problem]:
    fencing = settings.connector.get(_FENCING)
    if fencing is not None and fencing.value.strip() == Fencing.NONE:
        yield Problem.error(
            f"{fencing.key}: there are no transactions without transactional ids, but "
            f"{settings.flow.target}.{_SUPPORT}=enabled needs them",
            fencing,
            f"remove {fencing.key}, or set {settings.flow.target}.{_SUPPORT}=disabled",
        )


class _Places:
    """The places of one flow's settings in the file."""

    def __init__(self, settings: FlowSettings, effective: Settings) -> None:
        self._flow = settings.flow
        self._effective = effective

    @property
    def target(self) -> str:
        """The alias of the flow's target."""
        return self._flow.target

    def locate(self, problem: Problem) -> Problem:
        """Return a problem with the key and the line that the file has for its name."""
        name = problem.key or OWN_TRANSFORMS
        setting = self._effective.get(name)
        if setting is None or setting.key is None:
            # Something is missing: report it at the setting that requires it.
            asks = self._effective.get(OWN_TRANSFORMS if is_transform_key(name) else CONNECT_TRANSFORMS)
            key, line = f"{self._flow}.{name}", None if asks is None else asks.line
        else:
            key, line = setting.key, setting.line
        sentence = problem.message.removeprefix(f"{name}: ")
        update: dict[str, object] = {"key": key, "line": line, "message": f"{key}: {sentence}"}
        if setting is not None and setting.written is not None and _shows_value(problem, setting.value):
            update |= {"message": f"{key}: {_NOT_SHOWN}", "suggestion": None}
        return problem.model_copy(update=update)

    def first_of(self, transform: Transform) -> str:
        """Return the name of the setting that defines what a transform does."""
        names = (f"{PREFIX}{transform.name}.{rest}" for rest in ("deterministic", *SUB_KEYS) if rest != "topics")
        return next((name for name in names if name in self._effective), OWN_TRANSFORMS)


def _shows_value(problem: Problem, value: str) -> bool:
    text = f"{problem.message}\n{problem.suggestion or ''}"
    return any(part.strip() and part.strip() in text for part in (value, *value.split(",")))


def _not_deterministic(transforms: FlowTransforms, places: _Places) -> Iterator[Problem]:
    notice = _AT_LEAST_ONCE.format(target=places.target)
    for transform in transforms.transforms:
        if transform.determinism is Determinism.YES:
            continue
        reasons = "; ".join(str(each) for each in transform.non_determinism)
        if transform.stated_deterministic is False:
            reasons = reasons or "it says so of itself"
        elif transform.determinism is Determinism.UNKNOWN:
            reasons = reasons or f"the dependencies of {transform.function} are unknown"
        setting = places.first_of(transform)
        advice = (
            f"set {PREFIX}{transform.name}.deterministic=true if the same record always has the same result"
            if transform.determinism is Determinism.UNKNOWN
            else None
        )
        message = f"{setting}: the transform {transform.name} is not deterministic ({reasons}): {notice}"
        yield places.locate(Problem(severity=Severity.WARNING, message=message, key=setting, suggestion=advice))
