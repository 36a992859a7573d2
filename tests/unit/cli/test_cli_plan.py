"""`mirror plan` on a plan that is given to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import Mock

import pytest

from mirror_lib.cli import plan as plan_command
from mirror_lib.errors import BrokerUnreachableError, MirrorError, OffsetOutOfRangeError, TopicMissingError
from mirror_lib.features.forecast import shown as shown_forecast
from mirror_lib.features.forecast.plan import FlowForecast
from mirror_lib.features.forecast.verdicts import PartitionForecast
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionPlan, PartitionProblem, RunPlan
from mirror_lib.planning.record_paths import Path as Way
from mirror_lib.planning.record_paths import TopicPath
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.terminal import Terminal, invoke

Run = Callable[..., tuple[int, str, str]]


def _partition(topic: str, number: int, start: int, end: int, size: int) -> PartitionPlan:
    return PartitionPlan(
        source=TopicPartition(topic, number),
        target=TopicPartition(f"A.{topic}", number),
        start=start,
        end=end,
        topic_id="id",
        target_max_message_bytes=1_000_000,
        estimated_bytes=size,
    )


def _plan(*errors: MirrorError) -> RunPlan:
    return RunPlan(
        flow=FlowId("A", "B"),
        bins=(
            (_partition("orders", 0, 100, 1_100, 4_000_000), _partition("orders", 2, 0, 500, 1_000_000)),
            (_partition("orders", 1, 7, 8, 250_000),),
        ),
        problems=tuple(PartitionProblem(TopicPartition("lost", WHOLE_TOPIC), error) for error in errors),
        idle=3,
    )


@pytest.fixture(autouse=True)
def forecaster(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for the source, which tells what is to be expected."""
    made = Mock(return_value=FlowForecast(partitions=(), speed=None, interval_seconds=None))
    monkeypatch.setattr(shown_forecast, "forecast_plan", made)
    return made


def _expected(number: int, outlook: Outlook) -> PartitionForecast:
    return PartitionForecast(
        source=TopicPartition("orders", number),
        lag=1_000,
        lag_bytes=4_000_000,
        writes_per_second=5.0,
        copies_per_second=100.0,
        catch_up_seconds=600.0,
        deleted_by_time_seconds=300.0,
        deleted_by_size_seconds=float("inf"),
        outlook=outlook,
        reason="because it is so",
    )


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for both clusters."""
    made = Mock(return_value=_plan())
    monkeypatch.setattr(plan_command, "plan_flow", made)
    return made


@pytest.fixture
def run(terminal: Terminal) -> Run:
    return lambda *options: terminal.say("plan", *options)


def test_the_console_shows_tasks_and_partitions_and_json_the_document_of_the_jobs_dry_run(
    planner: Mock, run: Run
) -> None:
    code, shown, _ = run()

    assert code == 0
    lines = [line.split() for line in shown.splitlines()]
    assert ["0", "2", "1,500", "5.00"] in lines, "task, partitions, offsets, MB"
    assert ["orders", "1", "A.orders", "7", "8", "1", "0.25", "1"] in lines
    assert "3 partitions to copy in 2 tasks, at most 1,501 records, about 5.25 MB; 3 idle, 0 cannot" in shown

    code, shown, _ = run("--json", "--topics", "a.*", "--topics", "b", "--tasks", "5")

    assert code == 0
    assert json.loads(shown) == {**planner.return_value.to_dict(), "forecast": [], "exit_code": 0}
    # The options narrow the plan.
    flow, options, _ = planner.call_args.args
    assert (str(flow.flow), options.topics, options.tasks_max) == ("A->B", ("a.*", "b"), 5)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        # A run creates missing topics by itself; lost records are for a person.
        (TopicMissingError("it is missing.", action="Create it."), 0),
        (OffsetOutOfRangeError("records are lost.", action="Decide."), 3),
    ],
)
def test_problems_are_told_with_what_to_do(planner: Mock, run: Run, error: MirrorError, expected: int) -> None:
    planner.return_value = _plan(error)

    code, shown, _ = run()

    assert code == expected
    for part in ("lost", error.reason, error.what, error.action, "1 cannot be copied"):
        assert part in shown
    assert str(WHOLE_TOPIC) not in shown


def test_wrong_usage_ends_with_2(planner: Mock, run: Run, terminal: Terminal) -> None:
    assert run("--flow", "A->C")[0] == 2
    assert run("--tasks", "0")[0] == 2
    assert invoke("plan", "--config", terminal.file)[0] == 2
    planner.assert_not_called()


@pytest.mark.usefixtures("planner")
def test_what_retention_endangers_is_shown_and_what_is_well_only_counted(forecaster: Mock, run: Run) -> None:
    found = (_expected(1, Outlook.WILL_BE_LOST), _expected(0, Outlook.OK))
    forecaster.return_value = FlowForecast(partitions=found, speed=None, interval_seconds=None)

    code, shown, _ = run()

    assert code == 0
    (line,) = [line.split() for line in shown.splitlines() if "because it is so" in line]
    assert line[:5] == ["orders", "1", "will-be-lost", "1,000", "4.00"]
    assert "in 10 minutes" in shown, "caught up"
    assert "in 5 minutes" in shown, "deleted"
    assert "1 ok, 1 will-be-lost" in shown

    document = json.loads(run("--json")[1])

    assert [each["outlook"] for each in document["forecast"]] == ["will-be-lost", "ok"]
    assert document["forecast"][0]["deleted_by_size_seconds"] == "never"

    # A plan is shown though nothing can be forecast.
    forecaster.side_effect = BrokerUnreachableError("nobody answers.")

    code, shown, _ = run()

    assert code == 0
    assert "3 partitions to copy" in shown
    assert "No forecast: nobody answers." in shown


def test_the_way_of_each_topic_is_told_where_there_are_transforms(planner: Mock, run: Run) -> None:
    raw = TopicPath("orders", Way.RAW_COPY, (), "the flow has no transforms")
    planner.return_value = replace(_plan(), paths=(raw,))

    assert "raw copy" not in run()[1]
    (told,) = json.loads(run("--json")[1])["paths"]
    assert told == {"topic": "orders", "path": "raw copy", "transforms": [], "reason": "the flow has no transforms"}

    changed = TopicPath("orders", Way.TRANSFORM, ("route", "mask"), "mask applies to all topics")
    planner.return_value = replace(
        _plan(), paths=(changed, TopicPath("logs", Way.RAW_COPY, (), "no transform selects it: mask"))
    )

    shown = run()[1]

    assert "route -> mask" in shown
    assert "no transform selects it: mask" in shown
