"""A person at the command line, with the file of one flow and its ledger, and without clusters."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.ledger.store import Ledger
from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger


def invoke(*words: object, answer: str | None = None) -> tuple[int, str, str]:
    """Carry out a command; return its exit code and what it wrote to both outputs."""
    result = CliRunner().invoke(app, list(map(str, words)), input=answer)
    return result.exit_code, result.stdout, result.stderr


class Terminal:
    """Commands about the flow A->B."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.folder = folder
        self.file = write_flow(folder, LEDGER, *lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "ledger" in vars(self):
            self.ledger.close()

    @cached_property
    def ledger(self) -> Ledger:
        return ready_ledger(f"sqlite:///{self.folder}/ledger.sqlite3")

    def say(self, *words: object, answer: str | None = None) -> tuple[int, str, str]:
        chosen = () if "--flow" in words else ("--flow", "A->B")
        return invoke(*words, "--config", self.file, *chosen, answer=answer)

    def json(self, *words: object) -> tuple[int, dict[str, Any]]:
        code, shown, _ = self.say(*words, "--json")
        return code, json.loads(shown)
