"""Small faults are made where they are said to be made, and judged by tests that run for real."""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.generate import Fields, fields_of, mutants_of
from tools.mutants.model import Kind, Mutant, Outcome
from tools.mutants.seen import Seen
from tools.mutants.trial import Bench, DisturbedError
from tools.mutants.warm import WarmBrokers

SOURCE = textwrap.dedent(
    '''
    class Range:
        first: int
        last: int

    def length(found: Range, limit: int) -> int:
        """Not 1 of the faults is here."""
        if found.last < limit and found.first:
            return found.last - found.first + 1
        return limit if limit else 0

    async def settle(lock, log, work):
        async with lock:
            log.info("a message, and 1 number")
            await work.done()
            work.end()
        return [each for each in work if each]
    '''
)
CHANGES = {
    (Kind.COMPARISON, "found.last < limit", "found.last <= limit"),
    (Kind.BRANCH, "found.last < limit and found.first", "False"),
    (Kind.BRANCH, "found.last < limit and found.first", "found.first"),
    (Kind.BRANCH, "found.last < limit and found.first", "found.last < limit"),
    (Kind.FIELD, "found.last", "found.first"),
    (Kind.FIELD, "found.first", "found.last"),
    (Kind.ONE_OFF, "found.last - found.first", "found.last + found.first"),
    (Kind.ONE_OFF, "found.last - found.first + 1", "found.last - found.first - 1"),
    (Kind.ONE_OFF, "1", "2"),
    (Kind.ONE_OFF, "0", "1"),
    (Kind.BRANCH, "limit", "False"),
    (Kind.BRANCH, "limit", "True"),
    (Kind.WAIT, "lock", "__import__('contextlib').nullcontext()"),
    (Kind.WAIT, "await work.done()", "pass"),
    (Kind.CALL, "work.end()", "pass"),
    (Kind.BRANCH, "each", "True"),
}


def test_every_kind_of_fault_is_made_where_it_can_be_and_nowhere_else() -> None:
    found = mutants_of("mirror_lib/a.py", SOURCE, "a", fields_of(SOURCE))

    changes = [mutant.name.split(": ", 2)[2].partition(" #")[0].split(" => ") for mutant in found]
    assert {(mutant.kind, *change) for mutant, change in zip(found, changes, strict=True)} == CHANGES
    assert len({mutant.name for mutant in found}) == len(found)


PRODUCT = "def at_least(number, limit):\n    return number >= limit\n"
STRICT = "from mirror_lib.a import at_least\n\ndef test_it():\n    assert at_least(2, 2)\n"
LOOSE = "from mirror_lib.a import at_least\n\ndef test_it():\n    assert at_least(3, 2)\n"


class AllTests(Seen):
    """One test executes everything."""

    def __init__(self) -> None:
        super().__init__(None, {})

    def tests_of(self, path: str, first_line: int, last_line: int) -> tuple[str, ...]:
        return ("test_a.py::test_it",)


class BrokersElsewhere(WarmBrokers):
    """Tests that need none."""

    def start(self) -> None: ...


def project(folder: Path, tests: str) -> Mutant:
    """Make a project of one function; return a fault in it."""
    (folder / "mirror_lib").mkdir()
    (folder / "mirror_lib" / "__init__.py").touch()
    (folder / "mirror_lib" / "a.py").write_text(PRODUCT)
    (folder / "test_a.py").write_text(tests)
    (folder / "pytest.ini").touch()
    return mutants_of("mirror_lib/a.py", PRODUCT, "a", Fields())[0]


@pytest.mark.parametrize(
    ("tests", "outcome", "by"),
    [(STRICT, Outcome.KILLED_BY_UNIT, "test_a.py::test_it"), (LOOSE, Outcome.SURVIVED, "")],
    ids=["noticed", "not noticed"],
)
def test_given_a_fault_when_tests_run_then_they_decide_and_the_original_is_back(
    tmp_path: Path, tests: str, outcome: Outcome, by: str
) -> None:
    mutant = project(tmp_path, tests)

    verdict = Bench(tmp_path, AllTests(), Seen(None, {}), BrokersElsewhere(tmp_path)).judge(mutant)

    assert (verdict.outcome, verdict.by) == (outcome, by)
    assert (tmp_path / "mirror_lib" / "a.py").read_text() == PRODUCT


def test_given_bytecode_of_an_earlier_run_with_a_fault_of_the_same_size_when_one_is_judged_then_this_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = project(tmp_path, STRICT)
    harmless = replace(mutant, replacement="(number>= limit)")
    assert len(harmless.replacement) == len(mutant.replacement)

    outcomes = []
    for each in (harmless, mutant):
        # Each run counts the times of its files anew.
        monkeypatch.setattr("tools.mutants.trial._times", itertools.count(1_000_000_000))
        bench = Bench(tmp_path, AllTests(), Seen(None, {}), BrokersElsewhere(tmp_path))
        outcomes.append(bench.judge(each).outcome)

    assert outcomes == [Outcome.SURVIVED, Outcome.KILLED_BY_UNIT]


def test_given_a_test_on_brokers_that_fails_anyway_when_a_fault_is_judged_then_it_proves_nothing(
    tmp_path: Path,
) -> None:
    mutant = project(tmp_path, "def test_it():\n    assert False\n")
    bench = Bench(tmp_path, Seen(None, {}), AllTests(), BrokersElsewhere(tmp_path))

    with pytest.raises(DisturbedError, match="test_it fails without any fault, too"):
        bench.judge(mutant)
