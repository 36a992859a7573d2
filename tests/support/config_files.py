"""Configuration files that tests write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.loader import check, load
from mirror_lib.config.model import FlowConfig, Problem, Severity

TWO_CLUSTERS = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""


@dataclass(frozen=True)
class ConfigFile:
    """A file that begins with the lines of `base`: what a test adds begins at line 5, unless it has another base."""

    path: Path
    base: str = TWO_CLUSTERS

    def write(self, text: str = "", base: str | None = None) -> Path:
        self.path.write_text((self.base if base is None else base) + text)
        return self.path

    def problems(self, text: str = "", base: str | None = None) -> list[Problem]:
        return list(check(self.write(text, base)))

    def errors(self, text: str = "") -> list[Problem]:
        return [problem for problem in self.problems(text) if problem.severity is Severity.ERROR]

    def one(self, text: str) -> Problem:
        """The only problem."""
        problems = self.problems(text)
        assert len(problems) == 1, (text, problems)
        return problems[0]

    def flow(self, text: str = "", name: str = "A->B") -> FlowConfig:
        return load(self.write(text)).flow(name)
