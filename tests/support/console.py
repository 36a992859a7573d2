"""An operator at the command line: `mirror` in this process, with copies that need no Spark, and what messages name."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cli.run import command as cli_run
from mirror_lib.cli.run.outcome import close_abandoned, read_report
from mirror_lib.copy.job.command import main as job_main
from mirror_lib.copy.run_options import CopyRunner
from tests.support.flows import copy_here

_NAMED = re.compile(r"`mirror ([^`]+)`")


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said."""

    exit_code: int
    document: Mapping[str, Any]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The partitions that a run names as failed."""
        return list(self.document.get("failures") or [])

    @property
    def reasons(self) -> set[str]:
        """The reason codes of failures, and of the command's own error."""
        own = self.document.get("error")
        return {each["reason"] for each in (*self.failures, *([own] if own else []))}


class Console:
    """Commands about one flow of one file."""

    def __init__(self, path: Path, flow: str = "A->B") -> None:
        self.path, self.flow = path, flow

    def say(self, *words: str) -> Said:
        """Carry a command out; its words without the file and the flow."""
        chosen = () if "--flow" in words else ("--flow", self.flow)
        result = CliRunner().invoke(app, [*words, "--config", str(self.path), *chosen, "--json"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Said(result.exit_code, json.loads(result.stdout))

    def run(self) -> Said:
        """`mirror run`."""
        return self.say("run")

    def stopped(self, reason: str) -> dict[str, Any]:
        """A run that stops one partition or topic for this reason, with exit code 3; returns its failure."""
        said = self.run()
        assert (said.exit_code, said.reasons) == (3, {reason}), said.document
        return said.failures[0]

    def follow(self, failure: Mapping[str, Any], command: str, *more: str) -> Said:
        """Carry out the command that a message names, as it stands there; `more` is what it leaves open."""
        named = [shlex.split(each) for each in _NAMED.findall(failure["action"])]
        chosen = [words for words in named if words[: len(command.split())] == command.split()]
        assert chosen, f"{command!r} is not named: {failure['action']}"
        asks = ("--yes",) if chosen[0][0] in ("gaps", "position", "clusters", "cutover") else ()
        said = self.say(*chosen[0], *more, *asks)
        assert said.exit_code == 0, said.document
        return said

    def copied(self) -> None:
        """A run that ends well."""
        said = self.run()
        assert (said.exit_code, said.failures) == (0, []), said.document

    def runs_on(self) -> None:
        """The flow runs, runs again, and nothing waits for a decision."""
        self.copied()
        self.copied()
        assert self.say("gaps", "list", "--open").exit_code == 0

    def leads_on(self, reason: str, command: str, *more: str) -> None:
        """A run stops for this reason; with the command that its message names, the flow runs on."""
        self.follow(self.stopped(reason), command, *more)
        self.runs_on()

    def set(self, **settings: str) -> None:
        """Change the file, as a message says; `_` in a name stands for `.`."""
        self.change({name.replace("_", "."): value for name, value in settings.items()})

    def change(self, settings: Mapping[str, str]) -> None:
        """Change settings of the file; the last line of a key counts."""
        with self.path.open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())


@contextmanager
def copies_in_process(runner: CopyRunner = copy_here) -> Iterator[None]:
    """Let `mirror run` and `mirror backfill run` copy in this process instead of in a Spark job."""

    def copy(_output: Any, arguments: Any, files: Any, _master: str, ledger: Any, *, transforms: bool) -> Any:
        assert not transforms
        files.report.parent.mkdir(parents=True, exist_ok=True)
        try:
            return read_report(files, job_main(arguments.command_line(), lambda _flow: runner))
        finally:
            close_abandoned(ledger, arguments.run_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_run, "copy_by_job", copy)
        yield
