"""The arguments of a campaign, and the kinds of faults that they choose."""

import pytest

from faults.__main__ import main, make_options, parse_arguments
from faults.campaign import Options
from faults.flow_config import properties
from faults.kinds.all_kinds import KINDS, choose


def _options(*arguments: str) -> Options:
    return make_options(parse_arguments(arguments))


def test_there_are_more_kinds_than_must_be_reached() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 12


def test_without_arguments_every_kind_comes_once() -> None:
    options = _options()

    assert options.kinds == KINDS
    assert options.faults == len(KINDS)
    assert options.seconds is None
    assert options.brokers == 3


def test_a_soak_ends_by_the_clock_alone() -> None:
    options = _options("--minutes", "90")

    assert options.faults is None
    assert options.seconds == 5400


def test_a_soak_may_be_limited_by_a_number_too() -> None:
    options = _options("--minutes", "1", "--faults", "200")

    assert (options.faults, options.seconds) == (200, 60)


def test_kinds_are_chosen_by_name_in_the_order_given() -> None:
    options = _options("--kinds", "latency, worker-killed", "--seed", "7")

    assert [kind.name for kind in options.kinds] == ["latency", "worker-killed"]
    assert options.faults == 2
    assert options.seed == 7


def test_records_are_of_the_present_and_the_flow_as_it_is_unless_asked_for() -> None:
    usual, old = _options(), _options("--record-age", "2d", "--set", "mirror.old.records.in.transactions=true")

    assert (usual.age_seconds, usual.settings) == (0, {})
    assert (old.age_seconds, old.settings) == (172_800, {"mirror.old.records.in.transactions": "true"})


def test_properties_of_the_command_line_go_before_those_of_a_campaign() -> None:
    chosen = properties("a:1", "b:1", "sqlite:///x", brokers=3, own={"tasks.max": "4", "mirror.x": "y"})

    assert (chosen["tasks.max"], chosen["mirror.x"], chosen["replication.factor"]) == ("4", "y", "3")


def test_single_brokers_leave_out_what_needs_replicas() -> None:
    kinds = {kind.name for kind in choose((), brokers=1)}

    assert kinds < {kind.name for kind in KINDS}
    assert "target-leaders-moved" not in kinds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kinds", "earthquake"), "unknown kind of fault: earthquake. Known: acknowledgement-lost"),
        (("--kinds", "target-leaders-moved", "--brokers", "1"), "target-leaders-moved needs clusters of three brokers"),
        (("--minutes", "0"), "--minutes must be above 0"),
        (("--set", "tasks.max"), "not KEY=VALUE: tasks.max"),
    ],
)
def test_what_cannot_be_done_is_named_and_ends_with_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("argument", ["--faults=0", "--rate=-1", "--brokers=2"])
def test_wrong_numbers_end_the_program(argument: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments([argument])

    assert ended.value.code == 2
