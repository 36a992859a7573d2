"""Planning a backfill: ranges, budgets, names and estimates.

The states of a backfill, and the ways on that its messages name.
"""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib import errors
from mirror_lib.cli.main import app
from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.config.first_start import parse_first_start
from mirror_lib.config.model import FirstStart
from mirror_lib.errors import ConfigurationError, MirrorError, RetentionGapError, TargetDivergedError, Where
from mirror_lib.features.backfill import states as backfill_states
from mirror_lib.features.backfill.model import Backfill, BackfillRange, BackfillRequest, checked_name, shown_bound
from mirror_lib.features.backfill.plan import (
    BackfillEstimate,
    RangeEstimate,
    bound_offset,
    clip_facts,
    estimate_range,
    within_budget,
)
from mirror_lib.features.backfill.states import STATES, STOPS, Known, State, state_of, with_resolution
from mirror_lib.features.cutover.states import disaster as disaster_states
from mirror_lib.planning.model import PartitionFacts, RunPlan
from mirror_lib.planning.plan import plan_round
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts

FLOW = FlowId("A", "B")
EARLIEST, LATEST = FirstStart(reset="earliest"), FirstStart(reset="latest")
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders.old", 0)
RANGE = BackfillRange(SOURCE, TARGET, "id-1", 20, 60)
REQUEST = BackfillRequest(FLOW, ("orders",), FirstStart(offset=20), FirstStart(offset=60), into_suffix=".old")


def facts(log_start: int = 0, log_end: int = 100, position: int | None = None, **more: Any) -> PartitionFacts:
    position_topic_id = None if position is None else "id-1"
    usual = {"target": TARGET, "log_bytes": 10_000, "position": position, "position_topic_id": position_topic_id}
    return partition_facts(log_start=log_start, log_end=log_end, **(usual | more))


def planned(fact: PartitionFacts, wanted: BackfillRange = RANGE, *, accept_gaps: bool = False) -> RunPlan:
    return plan_round(FLOW, [clip_facts(fact, wanted, accept_gaps=accept_gaps)], tasks_max=1)


def test_an_accepted_loss_is_passed_over() -> None:
    (partition,) = planned(facts(log_start=30), accept_gaps=True).partitions

    assert (partition.start, partition.end) == (30, 60)


def test_a_range_that_was_deleted_altogether_is_done_when_that_is_accepted() -> None:
    plan = planned(facts(log_start=80), accept_gaps=True)

    assert (plan.partitions, plan.problems) == ((), ())


@given(
    st.integers(0, 200), st.integers(0, 200), st.integers(0, 200), st.integers(1, 200), st.none() | st.integers(0, 200)
)
def test_no_run_ever_leaves_its_range(log_start: int, more: int, first: int, count: int, done: int | None) -> None:
    wanted = BackfillRange(SOURCE, TARGET, "id-1", first, first + count)
    position = None if done is None else first + min(done, count)
    log_end = log_start + more

    plan = planned(facts(log_start, log_end, position), wanted, accept_gaps=True)

    for partition in plan.partitions:
        assert first <= partition.start < partition.end <= min(first + count, log_end)
        assert partition.start >= log_start
        assert position is None or partition.start >= position


def test_a_budget_shortens_all_partitions_alike() -> None:
    other = replace(
        facts(), source=TopicPartition("orders", 1), target=TopicPartition("A.orders.old", 1), log_end=1_100
    )
    plan = plan_round(FLOW, [facts(), replace(other, log_bytes=110_000)], tasks_max=2)

    # 10,000 and 110,000 bytes
    short = within_budget(plan, 12_000)

    ends = {partition.source.partition: partition.end for partition in short.partitions}
    assert ends == {0: 10, 1: 110}
    assert short.estimated_bytes == pytest.approx(12_000, abs=2)


def test_without_a_budget_and_with_a_large_one_the_plan_stays() -> None:
    plan = planned(facts())

    assert within_budget(plan, None) == plan
    assert within_budget(plan, 10**12) == plan
    assert within_budget(plan, 0).partitions == ()


@given(st.integers(1, 100_000), st.integers(1, 10**9))
def test_a_budget_however_small_comes_to_an_end(offsets: int, budget: int) -> None:
    plan = plan_round(FLOW, [facts(log_end=offsets, log_bytes=10**9)], tasks_max=1)

    (partition,) = within_budget(plan, budget).partitions

    assert 0 < partition.end <= offsets


def test_a_bound_is_an_offset_that_the_log_has_or_its_end(subtests: pytest.Subtests) -> None:
    for text, at_time, expected in (
        ("earliest", None, 10),
        ("latest", None, 90),
        ("offset 50", None, 50),
        ("offset 3", None, 10),
        ("offset 4711", None, 90),
        ("2026-01-31", OffsetFact(offset=33), 33),
        ("2026-01-31", OffsetFact(offset=-1), 90),
    ):
        with subtests.test(text=text, at_time=at_time):
            bound = parse_first_start(text)

            assert bound is not None
            assert bound_offset(bound, 10, 90, at_time) == expected


def test_a_bound_can_be_written_down_and_read_again(subtests: pytest.Subtests) -> None:
    for text in ("earliest", "latest", "offset 0", "2026-01-31T12:30:00.125Z", "2026-01-31T00:00+02:00"):
        with subtests.test(text=text):
            bound = parse_first_start(text)

            assert bound is not None
            assert parse_first_start(shown_bound(bound)) == bound


def test_the_same_request_has_the_same_name_and_another_has_another() -> None:
    same = replace(REQUEST, topics=("orders", "orders"))
    others = [
        replace(REQUEST, flow=FlowId("B", "A")),
        replace(REQUEST, topics=("orders", "payments")),
        replace(REQUEST, begin=EARLIEST),
        replace(REQUEST, end=LATEST),
        replace(REQUEST, into_suffix=None),
        replace(REQUEST, into_suffix=None, into=".old"),
    ]

    names = {request.derived_name for request in [REQUEST, *others]}

    assert same.derived_name == REQUEST.derived_name
    assert len(names) == 1 + len(others)
    assert all(checked_name(name) == name for name in names)


def test_some_names_cannot_be_part_of_others(subtests: pytest.Subtests) -> None:
    for name in ("", "a b", "a#b", "ä", "x" * 81):
        with subtests.test(name=name), pytest.raises(ConfigurationError):
            checked_name(name)


def test_a_backfill_is_never_taken_for_its_flow() -> None:
    backfill = Backfill("history", REQUEST, False, (RANGE,), datetime(2026, 1, 31, tzinfo=UTC))

    assert str(backfill.flow) == "A->B#backfill-history"
    assert backfill.connector == "MirrorBackfill-history"
    assert Backfill.from_dict(backfill.to_dict(), REQUEST) == backfill


def test_an_estimate_counts_what_is_left_and_still_held() -> None:
    sizes = {SOURCE: 10_000}

    assert estimate_range(RANGE, None, (0, 100), sizes) == RangeEstimate(RANGE, 20, 4_000)
    assert estimate_range(RANGE, 50, (0, 100), sizes) == RangeEstimate(RANGE, 50, 1_000)
    assert estimate_range(RANGE, 60, (0, 100), sizes).offsets == 0
    assert estimate_range(RANGE, None, (60, 100), sizes).bytes == 0
    assert estimate_range(RANGE, None, (0, 100), {}).bytes is None


def test_the_slower_of_rate_and_limit_decides_how_long_it_takes() -> None:
    backfill = Backfill("history", REQUEST, False, (RANGE,), datetime(2026, 1, 31, tzinfo=UTC))
    estimate = BackfillEstimate(backfill, True, (RangeEstimate(RANGE, 20, 4_000),))

    assert estimate.seconds is None
    assert replace(estimate, measured_rate=1_000.0).seconds == 4
    assert replace(estimate, measured_rate=1_000.0, bytes_per_second=100).seconds == 40
    assert replace(estimate, measured_rate=10.0, bytes_per_second=100).seconds == 400


def test_a_range_that_ends_where_it_begins_takes_nothing(subtests: pytest.Subtests) -> None:
    for begin, end, nothing in (
        ("latest", "latest", True),
        ("latest", "offset 5", True),
        ("earliest", "earliest", True),
        ("offset 3", "earliest", True),
        ("offset 9", "offset 3", True),
        ("offset 3", "offset 3", True),
        ("2026-02-01", "2026-01-31", True),
        ("earliest", "latest", False),
        ("offset 3", "offset 4", False),
        ("offset 9", "2026-01-31", False),
        ("2026-01-30", "2026-01-31", False),
        ("2026-01-30", "offset 3", False),
    ):
        with subtests.test(begin=begin, end=end):
            first, last = parse_first_start(begin), parse_first_start(end)
            assert first is not None
            assert last is not None

            assert BackfillRequest(FlowId("A", "B"), ("orders",), first, last).takes_nothing is nothing


DOCS = Path(__file__).resolve().parents[4] / "docs"
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
