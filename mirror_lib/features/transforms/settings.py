"""The settings `mirror.transforms` and `mirror.transform.*` of a flow: their typed values and their problems."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from mirror_lib.config.settings.keys_of_transforms import OWN_TRANSFORMS, PREFIX, REGISTRY, REGISTRY_KEYS, SUB_KEYS
from mirror_lib.features.transforms.key_problems import problem
from mirror_lib.features.transforms.model import NO_TRANSFORMS, FlowTransforms, SchemaRegistry, Transform
from mirror_lib.problems import Problem, Severity
from mirror_lib.topology.java_types import parse_list

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#@]*)?")


def parse_transforms(
    settings: Mapping[str, str],
    hidden: Collection[str] = (),
    *,
    shared: Collection[str] = (),
    folder: Path = Path(),
) -> tuple[FlowTransforms, tuple[Problem, ...]]:
    """Return the transforms of a flow.

    Args:
        settings: the effective settings of the flow, without its prefix; others than those of transforms are ignored.
        hidden: keys whose values must not be shown, since they may hold values of a config provider.
        shared: keys that other flows have too: those of a transform that this flow does not name are for one of them.
        folder: base of relative paths.

    Returns:
        The transforms, without those that cannot be used, and every problem, each with its key. With an error among
        them the transforms are incomplete: the flow must not run.
    """
    own = {key: text for key, text in settings.items() if key.startswith((OWN_TRANSFORMS, PREFIX))}
    return _Parse(own, hidden, shared, folder).run() if own else (NO_TRANSFORMS, ())


def listed_names(text: str) -> tuple[str, ...]:
    """Return the names in a `mirror.transforms`, right or wrong."""
    return tuple(name for name in parse_list(text) if name)


def unlisted_problems(keys: Iterable[str], listed: Collection[str]) -> Iterator[Problem]:
    """Yield problems of settings of transforms that are not named.

    Args:
        keys: of the flow or of the file; those of named transforms, and of the registries, are right.
        listed: the names in `mirror.transforms`.
    """
    for key in keys:
        name, dot, rest = key.removeprefix(PREFIX).partition(".")
        if not (key.startswith(PREFIX) and name and dot and rest) or name == REGISTRY or name in listed:
            continue
        guess = _closest(name, listed, 0.6)
        advice = f"did you mean {guess}?" if guess else f"add {name} to {OWN_TRANSFORMS}"
        yield problem(
            Severity.WARNING, key, f"it has no effect, because {OWN_TRANSFORMS} does not contain {name}", advice
        )


def statement_files(settings: Mapping[str, str], folder: Path = Path()) -> tuple[Path, ...]:
    """Return the files that `parse_transforms` reads, even if it cannot use their content."""
    named = (text.strip() for key, text in settings.items() if key.startswith(PREFIX) and key.endswith(".sql.file"))
    return tuple(dict.fromkeys(folder / file for file in named if file))


class _Parse:
    """One pass over the settings of one flow."""

    def __init__(
        self, settings: Mapping[str, str], hidden: Collection[str], shared: Collection[str], folder: Path
    ) -> None:
        self._settings = settings
        self._hidden = hidden
        self._shared = shared
        self._folder = folder
        self._problems: list[Problem] = []

    def run(self) -> tuple[FlowTransforms, tuple[Problem, ...]]:
        by_name = self._by_name()
        names = tuple(self._names(by_name))
        registries = self._registries(by_name.pop(REGISTRY, {}))
        listed = {*names, *listed_names(self._settings.get(OWN_TRANSFORMS, ""))}
        self._problems += unlisted_problems((key for key in self._settings if key not in self._shared), listed)
        transforms = [self._transform(name, by_name.get(name, {}), registries) for name in names]
        flow = FlowTransforms(
            tuple(each for each in transforms if each is not None), registries.get("source"), registries.get("target")
        )
        return flow, tuple(dict.fromkeys(self._problems))

    def _by_name(self) -> dict[str, dict[str, str]]:
        """Return the settings of each transform, by the part after its name."""
        by_name: dict[str, dict[str, str]] = {}
        for key, text in self._settings.items():
            if key == OWN_TRANSFORMS:
                continue
            name, dot, rest = key.removeprefix(PREFIX).partition(".")
            if not key.startswith(PREFIX):
                instead = f"{PREFIX}{key.removeprefix(OWN_TRANSFORMS).lstrip('.')}"
                self._error(key, "unknown setting", f"did you mean {instead}?")
            elif not (name and dot and rest):
                self._error(key, "the name of the setting is missing", f"write {PREFIX}<name>.filter, for example")
            else:
                by_name.setdefault(name, {})[rest] = text
        return by_name

    def _names(self, by_name: Collection[str]) -> Iterator[str]:
        """Yield the names of `mirror.transforms` that can be used."""
        seen: set[str] = set()
        for name in listed_names(self._settings.get(OWN_TRANSFORMS, "")):
            if name in seen:
                self._error(OWN_TRANSFORMS, f"{name} is in it twice", "use each transform once")
            elif name == REGISTRY:
                self._error(
                    OWN_TRANSFORMS,
                    f"{REGISTRY} is not allowed as the name of a transform",
                    "it is reserved for the settings of schema registries",
                )
            elif _NAME.fullmatch(name) is None:
                advice = "names consist of letters, digits, - and _, and start with a letter or digit"
                self._error(OWN_TRANSFORMS, f"{name!r} is not a valid name of a transform", advice)
            elif name not in by_name:
                guess = _closest(name, by_name, 0.6)
                advice = f"did you mean {guess}?" if guess else f"set {PREFIX}{name}.filter, for example"
                self._error(OWN_TRANSFORMS, f"the transform {name} has no settings", advice)
            else:
                yield name
            seen.add(name)

    def _transform(
        self, name: str, own: Mapping[str, str], registries: Mapping[str, SchemaRegistry]
    ) -> Transform | None:
        known = {}
        for rest, text in own.items():
            if rest in SUB_KEYS:
                known[rest] = text
            else:
                self._unknown(f"{PREFIX}{name}.", rest, SUB_KEYS)
        # sqlglot is imported only if it is needed: that takes a noticeable part of a second.
        from mirror_lib.features.transforms.one_transform import parse_transform

        hidden = {key.removeprefix(f"{PREFIX}{name}.") for key in self._hidden if key.startswith(f"{PREFIX}{name}.")}
        transform, problems = parse_transform(
            name, known, hidden, has_registry="source" in registries, folder=self._folder
        )
        self._problems += problems
        return transform

    def _registries(self, own: Mapping[str, str]) -> dict[str, SchemaRegistry]:
        for rest in own:
            if rest not in REGISTRY_KEYS:
                self._unknown(f"{PREFIX}{REGISTRY}.", rest, REGISTRY_KEYS)
        found = {}
        for side in ("source", "target"):
            registry = self._registry(side, own)
            if registry is not None:
                found[side] = registry
        return found

    def _registry(self, side: str, own: Mapping[str, str]) -> SchemaRegistry | None:
        before = f"{PREFIX}{REGISTRY}.{side}"
        urls = tuple(url.rstrip("/") for url in parse_list(own.get(f"{side}.url", "")) if url)
        user, password = own.get(f"{side}.user", "").strip() or None, own.get(f"{side}.password") or None
        if not urls:
            for name in ("url", "user", "password"):
                if f"{side}.{name}" in own:
                    self._warn(f"{before}.{name}", "it has no effect without an address", f"set {before}.url")
            return None
        if any(_URL.fullmatch(url) is None for url in urls):
            advice = f"write http://host:port or https://host:port, and {before}.user and .password for its user"
            self._error(f"{before}.url", "it must be a list of HTTP addresses", advice)
            return None
        if password is not None and user is None:
            self._error(f"{before}.password", "a password without a user is not used", f"set {before}.user")
        return SchemaRegistry(urls, user, password)

    def _unknown(self, before: str, rest: str, known: Mapping[str, str]) -> None:
        guess = _closest(rest, known, 0.6) or next((each for each in known if each.startswith(f"{rest}.")), None)
        advice = f"did you mean {before}{guess}?" if guess else f"settings are {', '.join(known)}"
        self._error(f"{before}{rest}", f"unknown setting {rest}", advice)

    def _error(self, key: str, sentence: str, advice: str) -> None:
        self._problems.append(problem(Severity.ERROR, key, sentence, advice))

    def _warn(self, key: str, sentence: str, advice: str) -> None:
        self._problems.append(problem(Severity.WARNING, key, sentence, advice))


def _closest(name: str, known: Iterable[str], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(known), 1, cutoff)), None)
