"""`docker-compose.yaml` as commands and environments that can be started without containers."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_PROJECT = Path(__file__).resolve().parents[2]
_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Z_]+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}")
_DOCKER_ENV = re.compile(r'([A-Z_]+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Service:
    """What a container would run."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    health_check: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComposeFile:
    """The file with its variables replaced, and with names and paths of containers as they are on this machine."""

    services: Mapping[str, Any]
    #: Of every container of the project's own image.
    image_environment: Mapping[str, str]
    #: Text -> what stands for it here; the longest goes first.
    here: Mapping[str, str]

    @classmethod
    def read(cls, variables: Mapping[str, str], here: Mapping[str, str]) -> ComposeFile:
        """Read the project's file.

        Args:
            variables: what `.env` says; those of `.env.example` count where it says nothing.
            here: see the field.
        """
        known = {**_example(), **variables}
        parsed = yaml.safe_load((_PROJECT / "docker-compose.yaml").read_text())
        dockerfile = (_PROJECT / "deploy" / "Dockerfile").read_text()
        of_image = dockerfile[dockerfile.index("\nENV ") :]
        return cls(_replaced(parsed["services"], known), dict(_DOCKER_ENV.findall(of_image)), here)

    def service(self, name: str) -> Service:
        """One service of the project's own image."""
        service = self.services[name]
        assert service["image"] == "batch-mirror:local"
        command = [*service.get("entrypoint", ()), *service["command"]]
        environment = {**self.image_environment, **service.get("environment", {})}
        return Service(
            command=tuple(self._here(word) for word in command),
            environment={key: self._here(value) for key, value in environment.items() if key != "PATH"},
            health_check=tuple(self._here(word) for word in _check(service.get("healthcheck", {}))),
        )

    def _here(self, text: str) -> str:
        for old in sorted(self.here, key=len, reverse=True):
            text = text.replace(old, self.here[old])
        return text


def new_secrets(project: Path) -> tuple[dict[str, str], Path]:
    """Run the project's script in a copy of what it reads.

    Returns:
        The variables of `.env`, and the folder of the files.
    """
    shutil.copytree(_PROJECT / "deploy", project / "deploy", ignore=shutil.ignore_patterns("secrets"))
    shutil.copy(_PROJECT / ".env.example", project)
    subprocess.run(["sh", str(project / "deploy" / "new-secrets.sh")], check=True, timeout=60)
    return _variables(project / ".env"), project / "deploy" / "secrets"


def _check(check: Mapping[str, Any]) -> Sequence[str]:
    kind, *words = check.get("test", ["NONE"])
    return words if kind == "CMD" else shlex.split(words[0]) if kind == "CMD-SHELL" else ()


def _example() -> dict[str, str]:
    return _variables(_PROJECT / ".env.example")


def _variables(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def _replaced(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, known) for each in value]
    return _VARIABLE.sub(lambda match: _value(match, known), value) if isinstance(value, str) else value


def _value(match: re.Match[str], known: Mapping[str, str]) -> str:
    if match["name"] is None:
        return "$"
    return known.get(match["name"]) or match["default"] or ""
