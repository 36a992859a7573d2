"""Variables in values, `${name:path:key}`, and the providers that resolve them (KIP-297, KIP-421).

As in Kafka's `ConfigTransformer`, a variable with an unknown provider or key stays as written; here it is also
reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from mirror_lib.config.file.properties import byte_order_mark, parse_properties
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.model import Severity
from mirror_lib.config.secrets.variables import Variable, replace_variables, unclosed_provider
from mirror_lib.errors import ConfigurationError
from mirror_lib.feature import Hook
from mirror_lib.installed_features import provided
from mirror_lib.operator_limits import (
    NAMES_VARIABLE,
    PROVIDERS_VARIABLE,
    allowed_path,
    is_provider_allowed,
    is_variable_allowed,
    read_named,
)
from mirror_lib.topology.bounded_pattern import SlowPatternError
from mirror_lib.topology.java_regex import compile_java
from mirror_lib.topology.java_types import parse_list

_PACKAGE = "org.apache.kafka.common.config.provider"
_PREFIX = "config.providers"
#: Java's MM2 does not have it.
_AIRFLOW_SECRETS = "mirror_lib.AirflowSecretProvider"


class ProviderError(ValueError):
    """A provider is declared wrongly or cannot read the requested value; the text says what and why."""


class NotLookedUpError(ProviderError):
    """The value is not needed here and was not looked up: the variable stays as written, and this is not a problem."""


class ConfigProvider(Protocol):
    """One source of values."""

    def get(self, path: str, key: str) -> str | None:
        """Return the value, None if there is none or if it must not be read.

        Raises:
            ProviderError: the place cannot be read.
            NotLookedUpError: the value is not needed here; the variable stays as written, without a report.
        """


@runtime_checkable
class ReadsFiles(Protocol):
    """A provider whose values change when files do."""

    @property
    def files(self) -> Iterable[FileStamp]:
        """The files that were read so far."""


@runtime_checkable
class LimitsSettings(Protocol):
    """A provider whose values only some settings may have."""

    def refusal(self, key: str) -> str | None:
        """Return why a setting may not have such values; None if it may."""


#: Makes a provider from its `config.providers.<name>.param.*`.
Factory = Callable[[Mapping[str, str]], ConfigProvider]


class EnvironmentProvider:
    """`EnvVarConfigProvider`: environment variables whose whole name matches `allowlist.pattern`."""

    def __init__(self, parameters: Mapping[str, str], environment: Mapping[str, str] | None = None) -> None:
        pattern = parameters.get("allowlist.pattern", "").strip() or ".*"
        try:
            self._allowed = compile_java(pattern)
        except ValueError as error:
            raise ProviderError(f"allowlist.pattern {pattern!r} is not a regular expression: {error}") from error
        self._environment = os.environ if environment is None else environment

    def get(self, path: str, key: str) -> str | None:
        if path:
            raise ProviderError(f"environment variables have no path; write ${{env:{key}}} without {path!r}")
        try:
            is_allowed = _is_name(key) and self._allowed.fullmatch(key) and is_variable_allowed(key)
        except SlowPatternError as error:
            raise ProviderError(f"allowlist.pattern: {error.what}") from error
        except re.error as error:
            raise ProviderError(f"{NAMES_VARIABLE} is not a regular expression: {error}") from error
        return self._environment.get(key) if is_allowed else None


class _FileReader:
    """Reads values from files of allowed folders, and keeps which files it has read."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = _AllowedPaths(parameters)
        self._stamps: dict[Path, FileStamp] = {}

    @property
    def files(self) -> Iterable[FileStamp]:
        """See `ReadsFiles`."""
        return self._stamps.values()


class FileProvider(_FileReader):
    """`FileConfigProvider`: a key of another properties file; `allowed.paths` limits which files."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        super().__init__(parameters)
        self._files: dict[Path, Mapping[str, str]] = {}

    def get(self, path: str, key: str) -> str | None:
        file = self._allowed.resolve(path)
        if file is None:
            return None
        if file not in self._files:
            self._stamps[file] = FileStamp.of(file)
            data = _read(file)
            marked = byte_order_mark(data)
            if marked is not None and marked.severity is Severity.ERROR:
                raise ProviderError(f"{file}: {marked.message}; {marked.suggestion}")
            entries = parse_properties(data).effective
            self._files[file] = {name: entry.value for name, entry in entries.items()}
        return self._files[file].get(key)


class DirectoryProvider(_FileReader):
    """`DirectoryConfigProvider`: the whole content of a file in a folder, as mounted secrets have it."""

    def get(self, path: str, key: str) -> str | None:
        folder = self._allowed.resolve(path)
        if folder is None:
            return None
        if not folder.is_dir():
            self._stamps[folder] = FileStamp.of(folder)
            raise ProviderError(f"{folder} is not a folder")
        file = folder / key
        # Only direct children count: a key such as ../x names none.
        if Path(key).name != key or not _is_name(key):
            return None
        self._stamps[file] = FileStamp.of(file)
        if not file.is_file():
            return None
        try:
            return _read(file).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProviderError(f"{file} is not UTF-8 text") from error


class _MissingPathsError(ProviderError):
    """No allowed path exists; that may change as soon as one of the files is created."""

    def __init__(self, what: str, files: tuple[FileStamp, ...]) -> None:
        super().__init__(what)
        self.files = files


@dataclass(frozen=True, slots=True)
class _NotMade:
    """Replaces a provider that has no value as long as these files do not exist."""

    files: tuple[FileStamp, ...]

    def get(self, path: str, key: str) -> str | None:
        del path, key
        return None


class _AllowedPaths:
    """Without `allowed.paths` everything is allowed (`AllowedPaths` of Kafka)."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = [Path(os.path.normpath(part)) for part in parse_list(parameters.get("allowed.paths", ""))]
        stamps = tuple(map(FileStamp.of, self._allowed))
        for path in self._allowed:
            if not path.is_absolute() or not path.exists():
                what = f"allowed.paths must be absolute paths that exist; {path} is not"
                raise _MissingPathsError(what, stamps)

    def resolve(self, path: str) -> Path | None:
        if not path:
            return None
        if not _is_name(path):
            raise ProviderError(f"{path!r} is not a valid file name")
        normal = Path(os.path.normpath(path))
        if self._allowed and not any(normal.is_relative_to(allowed) for allowed in self._allowed):
            return None
        try:
            allowed_path(normal)
        except PermissionError as error:
            raise ProviderError(f"{normal} cannot be read: {error.strerror}") from error
        return normal


def _is_name(text: str) -> bool:
    """Return True if the operating system can have this name: escapes of a properties file can make invalid texts."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _read(path: Path) -> bytes:
    try:
        return read_named(path)
    except OSError as error:
        raise ProviderError(f"{path} cannot be read: {error.strerror}") from error


def _airflow_secrets(parameters: Mapping[str, str]) -> ConfigProvider:
    try:
        provider: ConfigProvider = provided(Hook.AIRFLOW_SECRETS, by="airflow_secrets", extra="")(parameters)
    except ConfigurationError as error:
        todo = error.action[:1].lower() + error.action[1:].rstrip(".")
        raise ProviderError(f"{_AIRFLOW_SECRETS} {error.what.rstrip('.')}; {todo}") from error
    return provider


#: Java class name -> its implementation here. Programs may add their own providers.
REGISTRY: dict[str, Factory] = {
    f"{_PACKAGE}.EnvVarConfigProvider": EnvironmentProvider,
    f"{_PACKAGE}.FileConfigProvider": FileProvider,
    f"{_PACKAGE}.DirectoryConfigProvider": DirectoryProvider,
    _AIRFLOW_SECRETS: _airflow_secrets,
}
#: By class, as the operator's limit has them.
_SHORT_NAMES = dict(zip(REGISTRY, ("env", "file", "directory", "airflow"), strict=True))


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text after replacing variables.

    Attributes:
        text: may be a secret.
        unknown: variables that stay as written, since they are unknown.
        failures: why others were not replaced.
        refusals: why the setting may not have variables of a provider, replaced or not.
        later: True if one of them stays as written because its value is not needed here.
        given: values from providers, which may be secrets.
    """

    text: str = field(repr=False)
    unknown: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    later: bool = False
    given: tuple[str, ...] = field(default=(), repr=False)


class Resolver:
    """Replaces the variables of a file by its own providers."""

    def __init__(self, providers: Mapping[str, ConfigProvider]) -> None:
        self._providers = providers

    def resolve(self, text: str, key: str = "") -> Resolved:
        """Replace every variable of a setting once; values from providers are not expanded again."""
        if "${" not in text:
            return Resolved(text)
        unknown: list[str] = []
        failures: list[str] = []
        refusals: list[str | None] = []
        later: list[str] = []
        given: list[str] = []

        def replace(variable: Variable) -> str:
            provider = self._providers.get(variable.provider)
            if provider is None:
                unknown.append(variable.written)
                return variable.written
            if isinstance(provider, LimitsSettings):
                refusals.append(provider.refusal(key))
            try:
                value = provider.get(variable.path, variable.key)
            except NotLookedUpError:
                later.append(variable.written)
                return variable.written
            except ProviderError as error:
                failures.append(f"{variable.written}: {error}")
                return variable.written
            if value is None:
                unknown.append(variable.written)
                return variable.written
            given.append(value)
            return value

        replaced = replace_variables(text, replace)
        # Of what stays in the text, not of values from providers.
        unclosed = unclosed_provider(replace_variables(text, lambda _: ""))
        if unclosed in self._providers:
            failures.append(f"${{{unclosed}: the closing }} is missing; the value would be used as written")
        refused = tuple(dict.fromkeys(filter(None, refusals)))
        return Resolved(replaced, tuple(unknown), tuple(failures), refused, later=bool(later), given=tuple(given))


def files_read(providers: Iterable[ConfigProvider]) -> tuple[FileStamp, ...]:
    """Return the files that the providers have read."""
    return tuple(stamp for provider in providers if isinstance(provider, ReadsFiles) for stamp in provider.files)


def make_providers(file: Mapping[str, str]) -> tuple[dict[str, ConfigProvider], dict[str, str]]:
    """Return the providers of `config.providers`, and the key and problem of each that cannot be made.

    A provider whose folders are missing is replaced by one without values, so that readers notice when they appear.
    """
    providers: dict[str, ConfigProvider] = {}
    wrong: dict[str, str] = {}
    for name in filter(None, parse_list(file.get(_PREFIX, ""))):
        key = f"{_PREFIX}.{name}.class"
        java_class = file.get(key, "").strip()
        prefix = f"{_PREFIX}.{name}.param."
        parameters = {key.removeprefix(prefix): value for key, value in file.items() if key.startswith(prefix)}
        if not java_class:
            wrong[_PREFIX] = f"provider {name} has no class: set {key}"
        elif java_class not in REGISTRY:
            wrong[key] = f"{java_class} is not a supported provider; supported: {', '.join(sorted(REGISTRY))}"
        elif not is_provider_allowed(_SHORT_NAMES.get(java_class, java_class)):
            wrong[key] = f"{java_class} is not allowed here: the operator limits providers by {PROVIDERS_VARIABLE}"
        else:
            try:
                providers[name] = REGISTRY[java_class](parameters)
            except ProviderError as error:
                wrong[key] = str(error)
                if isinstance(error, _MissingPathsError):
                    providers[name] = _NotMade(error.files)
    return providers, wrong
