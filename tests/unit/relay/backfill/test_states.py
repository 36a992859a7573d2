"""The states of a backfill, and the ways on that its messages name."""

from __future__ import annotations

import itertools
import re
import shlex
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from mirror_lib import errors
from mirror_lib.cli.main import app
from mirror_lib.config.model import FirstStart
from mirror_lib.errors import MirrorError, RetentionGapError, TargetDivergedError, Where
from mirror_lib.features.backfill import states as backfill_states
from mirror_lib.features.backfill.model import Backfill, BackfillRange, BackfillRequest
from mirror_lib.features.backfill.states import STATES, STOPS, Known, State, state_of, with_resolution
from mirror_lib.features.cutover.states import disaster as disaster_states
from mirror_lib.topology.names import FlowId, TopicPartition

DOCS = Path(__file__).resolve().parents[4] / "docs"
FLOW = FlowId("A", "B")
PLACE = Where(flow="A->B#backfill-history", topic="my.orders", partition=1)
_COMMAND = re.compile(r"`mirror ([^`]+)`")


def kinds() -> dict[str, type[MirrorError]]:
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MirrorError)]
    return {each.reason: each for each in found}


def backfill(
    *, into: str | None = None, suffix: str | None = None, late: bool = False, partitions: int = 1
) -> Backfill:
    request = BackfillRequest(
        FLOW, (r"my\..*",), FirstStart(reset="earliest"), FirstStart(reset="latest"), into, suffix, after_cutover=late
    )
    ranges = tuple(
        BackfillRange(
            TopicPartition("my.orders", number), TopicPartition("copy", number), "id", 10 + number, 90 + number
        )
        for number in range(1, partitions + 1)
    )
    return Backfill("history", request, not (into or suffix), ranges, datetime(2026, 3, 1, tzinfo=UTC))


def commands(text: str) -> list[list[str]]:
    return [shlex.split(each) for each in _COMMAND.findall(text)]


@cache
def program() -> Any:
    return typer.main.get_command(app)


def check_exists(words: list[str]) -> None:
    """A command of the program with options that it has."""
    command = program()
    while hasattr(command, "list_commands"):
        command = command.get_command(typer.Context(command), words.pop(0))
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


def test_everything_that_the_ledger_can_say_is_a_state_and_every_state_can_be_said() -> None:
    found = {
        state_of(Known(carried=carried, run_state=run_state, reason=reason, left=left))
        for carried, left in itertools.product((False, True), repeat=2)
        for run_state in (None, "running", "succeeded", "partial", "failed")
        for reason in (None, "run-died", "retention-gap")
    }

    assert found == set(State) == set(STATES)


def test_a_stopped_partition_names_commands_about_the_backfill_and_not_about_the_flow(
    subtests: pytest.Subtests,
) -> None:
    for reason, into, interrupted in itertools.product(sorted(STOPS), ("topic", "suffix", "same"), (False, True)):
        with subtests.test(reason=reason, into=into, interrupted=interrupted):
            error = kinds()[reason](
                "it stopped.", where=PLACE, action="`mirror gaps accept --flow 'A->B#backfill-history'`"
            )
            where = {"topic": backfill(into="old"), "suffix": backfill(suffix=".old"), "same": backfill()}[into]
            marked_at = 40 if where.into_live else None

            told = with_resolution(where, error, interrupted=interrupted, marked_at=marked_at)

            assert (told.reason, told.what, told.where) == (error.reason, error.what, error.where)
            assert "mirror gaps" not in told.action
            assert "#backfill" not in told.action
            named = commands(told.action)
            assert ["backfill", "run"] in [words[:2] for words in named]
            for words in named:
                check_exists(words)


def test_a_command_for_another_topic_names_the_range_where_it_is_the_same_for_all_partitions() -> None:
    one, many = backfill(into="old"), backfill(suffix=".old", partitions=2)

    assert "--topics 'my\\.orders' --from 'offset 11' --to 'offset 91' --into 'old.anew'" in diverged(one)
    assert "--topics 'my\\.orders' --from 'earliest' --to 'latest' --into-suffix '.old.anew'" in diverged(many)
    # `cutover` would leave out what counts as fetched
    late = backfill(suffix=".late", late=True, partitions=2)
    assert "--from 'offset 11' --to 'offset 92' --into-suffix '.late.anew'" in diverged(late)


def diverged(of: Backfill) -> str:
    return with_resolution(of, TargetDivergedError("foreign.", where=PLACE)).action


def test_errors_that_are_corrected_outside_keep_their_words() -> None:
    for error in (
        errors.AuthorizationError("no.", where=PLACE, action="Grant it."),
        RetentionGapError("no place.", action="Look."),
    ):
        assert with_resolution(backfill(into="old"), error).action == error.action


def test_the_documentation_shows_the_tables_of_the_program() -> None:
    assert backfill_states.markdown() in (DOCS / "backfill.md").read_text(encoding="utf-8")
    assert disaster_states.markdown() in (DOCS / "runbooks.md").read_text(encoding="utf-8")
