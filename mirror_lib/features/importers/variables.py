"""Variables in imported settings, and their config providers in the new file. Pure.

Providers of Connect that this project does not have, such as Strimzi's for secrets of Kubernetes, become folders: each
secret is expected as a folder, as Kubernetes mounts it, and each of its keys as a file in there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.config.secrets.providers import REGISTRY
from mirror_lib.features.importers.oauth_options import SECRET_FILE
from mirror_lib.features.importers.questions import Answers, Question
from mirror_lib.features.importers.written_file import Placed
from mirror_lib.topology.java_types import parse_list

_PREFIX = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider"
_DIRECTORY, _ENVIRONMENT = f"{_PACKAGE}.DirectoryConfigProvider", f"{_PACKAGE}.EnvVarConfigProvider"
_VARIABLE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}:]*)\}")
#: Replaced by envsubst, Docker Compose and pipelines.
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: Usual names of Kafka's own providers, if the input does not define them.
_USUAL = {
    "env": _ENVIRONMENT,
    "strimzienv": _ENVIRONMENT,
    "file": f"{_PACKAGE}.FileConfigProvider",
    "strimzifile": f"{_PACKAGE}.FileConfigProvider",
    "dir": _DIRECTORY,
    "directory": _DIRECTORY,
    "strimzidir": _DIRECTORY,
}
_KUBERNETES = frozenset(
    {
        "io.strimzi.kafka.KubernetesSecretConfigProvider",
        "io.strimzi.kafka.KubernetesConfigMapConfigProvider",
    }
)
_USUAL_KUBERNETES = frozenset({"secrets", "configmaps", "strimzisecrets"})
#: Files that exist only within a pod of Strimzi.
_POD_FILES = ("/tmp/strimzi", "/tmp/kafka", "/opt/kafka", "/opt/strimzi")
_ENVIRONMENT_VARIABLES = "Environment variables"
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9]+")


@dataclass(slots=True)
class Variables:
    """Replaces the variables of settings, and collects the providers that they need.

    Attributes:
        worker: settings of the Connect worker, which define its providers.
        folder: where secrets are expected.
    """

    worker: Mapping[str, str] = field(repr=False)
    folder: str
    answers: Answers
    #: Provider -> its class.
    needed: dict[str, str] = field(default_factory=dict)
    #: Expected keys by folder, file or environment.
    _expected: dict[str, dict[str, None]] = field(default_factory=dict)

    def prerequisites(self) -> tuple[str, ...]:
        """Return what every machine has to have, a sentence each."""
        return tuple(f"{place}: {', '.join(keys)}" for place, keys in self._expected.items())

    def replace(self, lines: Sequence[Placed]) -> list[Placed]:
        """Return the same settings with variables that this project resolves."""
        return [Placed(each.origin, each.name, each.key, self._replace(each.value)) for each in lines]

    def provider_lines(self) -> list[Placed]:
        """Return the settings of the required providers."""
        if not self.needed:
            return []
        lines = [Placed("providers", _PREFIX, _PREFIX, ", ".join(self.needed))]
        for name, java_class in self.needed.items():
            lines.append(Placed("providers", name, f"{_PREFIX}.{name}.class", java_class))
            prefix = f"{_PREFIX}.{name}.param."
            if self._provider_class(name) == java_class:
                lines += [
                    Placed("providers", key, key, value) for key, value in self.worker.items() if key.startswith(prefix)
                ]
        return lines

    def _replace(self, text: str) -> str:
        if "${" not in text:
            return text
        text = _VARIABLE.sub(lambda match: self._variable(match[0], match[1], match[2] or "", match[3]), text)
        return _PLACEHOLDER.sub(self._placeholder, text)

    def _variable(self, written: str, provider: str, path: str, key: str) -> str:
        declared = self._provider_class(provider)
        if provider == SECRET_FILE:
            return self._secret_path(path, key)
        if declared in _KUBERNETES or (declared is None and provider in _USUAL_KUBERNETES):
            return self._secret(path, key)
        java_class = declared if declared is not None else _USUAL.get(provider)
        if java_class in REGISTRY and not path.startswith(_POD_FILES):
            self.needed[provider] = java_class
            place = "File" if java_class != _DIRECTORY else "Folder"
            self._expect(_ENVIRONMENT_VARIABLES if java_class == _ENVIRONMENT else f"{place} {path}", key)
            return written
        return self._foreign(written, provider, path, key, declared)

    def _foreign(self, written: str, provider: str, path: str, key: str, declared: str | None) -> str:
        what = f"its class is {declared}" if declared else "its class is unknown (pass the worker's file too)"
        if path.startswith(_POD_FILES):
            what = f"{path} exists only in a pod of Connect"
        answer = self.answers.ask(
            Question(
                f"provider.{provider}",
                f"settings use the provider {provider}, as in {written}, and {what}.",
                (
                    ("env", "the values come from environment variables, listed in the new file"),
                    ("dir", f"the values come from files under {self.folder}, listed in the new file"),
                    ("keep", "leave them unchanged: add config.providers to the new file later"),
                ),
            )
        )
        if answer == "env":
            name = _NOT_A_NAME.sub("_", f"MIRROR {path} {key}").upper().strip("_")
            self.needed[self._free("env", _ENVIRONMENT)] = _ENVIRONMENT
            self._expect(_ENVIRONMENT_VARIABLES, f"{name} (it was {written})")
            return f"${{{self._free('env', _ENVIRONMENT)}:{name}}}"
        if answer == "dir":
            return self._secret(_NOT_A_NAME.sub("-", path).strip("-") or provider, key)
        return written

    def _secret(self, path: str, key: str) -> str:
        name = self._free("secrets", _DIRECTORY)
        self.needed[name] = _DIRECTORY
        folder = self._secret_path(path, key).rpartition("/")[0]
        return f"${{{name}:{folder}:{key}}}"

    def _secret_path(self, path: str, key: str) -> str:
        folder = "/".join((self.folder.rstrip("/"), *(part for part in path.split("/") if part not in ("", ".", ".."))))
        self._expect(f"Folder {folder} with the keys of {path} as files", key)
        return f"{folder}/{key}"

    def _placeholder(self, match: re.Match[str]) -> str:
        answer = self.answers.ask(
            Question(
                "placeholders",
                f"{match[0]} is not a Kafka variable: another tool replaces it before Connect reads it.",
                (
                    ("env", "it is an environment variable, also for this program: ${env:NAME}"),
                    ("keep", "leave it: the same tool processes the new file"),
                ),
            )
        )
        if answer != "env":
            return match[0]
        name = self._free("env", _ENVIRONMENT)
        self.needed[name] = _ENVIRONMENT
        self._expect(_ENVIRONMENT_VARIABLES, match[1])
        return f"${{{name}:{match[1]}}}"

    def _free(self, wanted: str, java_class: str) -> str:
        """Return a provider name that is used for this class only."""
        for name in (wanted, *(f"{wanted}{number}" for number in range(2, 100))):
            taken = self.needed.get(name) or (self._provider_class(name) if name in self._declared_names() else None)
            if taken in (None, java_class) or taken in _KUBERNETES:
                return name
        raise AssertionError(wanted)

    def _provider_class(self, provider: str) -> str | None:
        if provider not in self._declared_names():
            return None
        return self.worker.get(f"{_PREFIX}.{provider}.class", "").strip() or None

    def _declared_names(self) -> tuple[str, ...]:
        return parse_list(self.worker.get(_PREFIX, ""))

    def _expect(self, place: str, key: str) -> None:
        self._expected.setdefault(place, {})[key] = None
