"""Results of a sample as data: a header, and a line for each mutant, appended as it is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.mutants.groups import GROUPS
from tools.mutants.model import Kind, Mutant, Outcome, Verdict

_EQUIVALENT = Path(__file__).with_name("equivalent.json")


@dataclass(frozen=True, slots=True)
class Header:
    """What was judged: the same header means that a run can be continued."""

    product: str
    tests: str
    seed: str
    sample: int


class ResultsError(Exception):
    """A results file cannot be used; the message is one line for the terminal."""


class Results:
    """A results file; verdicts that it holds are not judged again.

    Raises:
        ResultsError: the file belongs to another sample, or is none.
    """

    def __init__(self, file: Path, header: Header) -> None:
        self._file = file
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(asdict(header)) + "\n", encoding="utf-8")
        found, verdicts = read(file)
        self._by_name = {each.name: each for each in verdicts}
        if found != header:
            raise ResultsError(f"{file} holds another sample ({found}): name another file, or delete it")

    @property
    def verdicts(self) -> list[Verdict]:
        """The latest verdict on each mutant."""
        return list(self._by_name.values())

    def outcome_of(self, mutant: Mutant) -> Outcome | None:
        """Return the outcome of a mutant so far, None if it was not judged."""
        return self._by_name[mutant.name].outcome if mutant.name in self._by_name else None

    def add(self, verdict: Verdict) -> None:
        """Append a verdict, in place of an earlier one on the same mutant."""
        self._by_name[verdict.name] = verdict
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(verdict.to_dict()) + "\n")


def read(file: Path) -> tuple[Header, list[Verdict]]:
    """Return what a file holds: a mutant may have several verdicts, of which the last counts.

    Raises:
        ResultsError: it is no results file.
    """
    try:
        first, *others = file.read_text(encoding="utf-8").splitlines()
        header = Header(**json.loads(first))
        verdicts = [Verdict.from_dict(json.loads(line)) for line in others]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ResultsError(f"{file} is no results file: {error}") from error
    return header, verdicts


def equivalents() -> Mapping[str, str]:
    """Return the reason for each mutant that is the same program, by its name."""
    found: dict[str, str] = json.loads(_EQUIVALENT.read_text(encoding="utf-8"))
    return found


def with_equivalents(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts; survivors that are the same program as the original are named as such."""
    same = equivalents()
    return [
        replace(each, outcome=Outcome.EQUIVALENT) if not each.outcome.is_killed and each.name in same else each
        for each in verdicts
    ]


def print_table(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print outcomes by group and by kind, and the survivors by name."""
    for title, keys in (("package", list(GROUPS)), ("kind", [kind.value for kind in Kind])):
        table = Table(title, *(outcome.value for outcome in Outcome), "mutants")
        for key in keys:
            of_key = [each for each in verdicts if key in (each.group, each.kind.value)]
            table.add_row(key, *_counts(of_key))
        table.add_section()
        table.add_row("all", *_counts(verdicts))
        console.print(table)
    for each in verdicts:
        if each.outcome is Outcome.SURVIVED:
            seen = f"{each.unit_tests} unit and {each.integration_tests} integration tests execute it"
            console.print(f"survived: {each.name} (line {each.line}; {seen})", highlight=False, soft_wrap=True)


def lost(before: Sequence[Verdict], after: Sequence[Verdict]) -> list[tuple[Verdict, Verdict | None]]:
    """Return the mutants that were killed before and are not after, or were not judged."""
    judged = {each.name: each for each in after}
    return [
        (each, judged.get(each.name))
        for each in before
        if each.outcome.is_killed and not (each.name in judged and judged[each.name].outcome.is_killed)
    ]


def _counts(verdicts: Sequence[Verdict]) -> list[str]:
    return [str(sum(each.outcome is outcome for each in verdicts)) for outcome in Outcome] + [str(len(verdicts))]
