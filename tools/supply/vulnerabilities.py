"""Query pip-audit about all locked packages. Only packages in its response count as audited.

pip-audit ends with success and "No known vulnerabilities found" if its service knows no package at all, as behind a
mirror of the index that has files and nothing else. Here that is a failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.supply.lockfile import LOCK, LockedPackage

#: The services that pip-audit can query, in the order in which they are tried.
SERVICES = ("pypi", "osv")
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Vulnerable:
    """A package with known vulnerabilities."""

    name: str
    version: str
    #: Their ids, each with the versions that fix it.
    vulnerabilities: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The response of one service."""

    service: str
    asked: int
    vulnerable: tuple[Vulnerable, ...] = ()
    #: Packages without a response.
    silent: tuple[str, ...] = ()
    #: Why there is no response at all.
    failure: str | None = None

    @property
    def complete(self) -> bool:
        """True if there is a response for every package."""
        return self.failure is None and not self.silent


def audit(packages: Sequence[LockedPackage], service: str) -> Audit:
    """Query one service about the lock."""
    # The hashes of the lock are required, so that nothing is resolved and nothing is installed.
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--require-hashes", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--vulnerability-service", service]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Audit(service, 0, failure=f"no answer within {_SECONDS} s")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return Audit(service, 0, failure=lines[-1][:300] if lines else f"it ended with {done.returncode}")
    return judged(packages, service, answer)


def judged(packages: Sequence[LockedPackage], service: str, answer: Mapping[str, Any]) -> Audit:
    """Return the result of pip-audit's response for the locked packages.

    pip-audit skips packages with a marker of another platform; they are reported as `silent`.
    """
    answered: set[tuple[str, str]] = set()
    vulnerable: list[Vulnerable] = []
    for each in answer.get("dependencies", ()):
        if "skip_reason" in each or "version" not in each:
            continue
        answered.add((each["name"].lower(), each["version"]))
        if each.get("vulns"):
            found = tuple((one["id"], tuple(one.get("fix_versions") or ())) for one in each["vulns"])
            vulnerable.append(Vulnerable(each["name"], each["version"], found))
    silent = tuple(
        f"{each.name} {each.version}" for each in packages if (each.name.lower(), each.version) not in answered
    )
    return Audit(service, len(answered), tuple(vulnerable), silent)
