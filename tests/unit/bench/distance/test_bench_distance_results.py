"""What copies over a distance came to, against the local one and against what the line allows."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from bench.copiers.settings import Copier
from bench.distance.model import Allowed, Case
from bench.distance.options import make_options, parse_arguments
from bench.distance.results import Copied, distance_table, goals, standings, to_plain
from testbed.wan_direction import LineQuality

WIDE = Allowed(8, window=320e6, loss=None, width=None)
NARROW = Allowed(8, window=320e6, loss=1e6, width=None)


def copied(case: Case, seconds: float, allowed: Allowed | None = None, *, megabytes: int = 100) -> Copied:
    size = megabytes * 1_000_000
    return Copied(
        case, Copier.MIRROR, 1, size // 1000, size, size, allowed, seconds=0.5, copy_seconds=seconds, equal=True
    )


LOCAL = copied(Case.LOCAL, 1.0)


def test_a_rate_is_told_as_a_share_of_the_local_one_and_of_what_the_line_allows() -> None:
    _, far = standings([LOCAL, copied(Case.SOURCE_FAR, 4.0, WIDE)])

    assert far.records_per_second == pytest.approx(25_000)
    assert far.megabytes_per_second == pytest.approx(25)
    assert far.of_local == pytest.approx(0.25)
    assert far.of_allowed == pytest.approx(25 / 320)


def test_what_is_read_before_the_first_record_arrives_counts_as_well() -> None:
    # The whole copy waits in memory and arrives in a moment: the window alone would call that fast.
    _, far = standings([LOCAL, replace(copied(Case.TARGET_FAR, 4.0, WIDE), seconds=0.25)])

    assert far.window_of_local == pytest.approx(2.0)
    assert far.of_local == pytest.approx(0.25)


def test_of_mirror_maker_only_the_window_is_known() -> None:
    theirs = replace(LOCAL, copier=Copier.MM2_DEFAULT, seconds=5.0, copy_seconds=None)

    (found,) = standings([theirs])

    assert found.megabytes_per_second == pytest.approx(20)


def test_rounds_count_by_their_median() -> None:
    (local,) = standings([LOCAL, replace(LOCAL, round=2, copy_seconds=10.0), replace(LOCAL, round=3, copy_seconds=2.0)])

    assert local.megabytes_per_second == pytest.approx(50)


def test_a_copy_over_a_wide_line_must_have_half_of_the_local_rate() -> None:
    slow, fast = goals([LOCAL, copied(Case.SOURCE_FAR, 4.0, WIDE), copied(Case.TARGET_FAR, 1.9, WIDE)])

    assert slow.value == pytest.approx(0.25)
    assert slow.reached is False
    assert fast.value == pytest.approx(1 / 1.9)
    assert fast.reached is True


def test_a_copy_over_a_narrow_line_must_have_half_of_what_that_allows() -> None:
    (goal,) = goals([LOCAL, copied(Case.TARGET_LOSSY, 25.0, NARROW, megabytes=20)])

    assert goal.value == pytest.approx(0.8)
    assert goal.reached is True
    assert goal.detail == "0.8% of local; the line allows 1.0%"


def test_without_a_local_copy_nothing_can_be_said() -> None:
    (goal,) = goals([copied(Case.TARGET_FAR, 25.0, WIDE)])

    assert goal.reached is None


def test_a_failed_copy_has_no_rate_and_reaches_nothing() -> None:
    failed = Copied(Case.SOURCE_LOSSY, Copier.MIRROR, 1, 1_000, 1_000_000, 1_000_000, NARROW, failure="no answer")

    standing, (goal,) = standings([LOCAL, failed])[1], goals([LOCAL, failed])

    assert standing.records_per_second is standing.of_local is standing.of_allowed is None
    assert not standing.equal
    assert goal.reached is False


def test_the_table_shows_what_the_line_allows_beside_what_was_reached() -> None:
    console = Console(width=220, record=True, file=StringIO())

    console.print(distance_table([LOCAL, copied(Case.TARGET_LOSSY, 25.0, NARROW, megabytes=20)]))

    row = next(line for line in console.export_text().splitlines() if Case.TARGET_LOSSY.value in line)
    assert [cell.strip() for cell in row.strip("│ ").split("│")][-6:] == ["0.8", "8", "320.0", "1.0", "80%", "yes"]


def test_everything_measured_can_be_written_as_json() -> None:
    (plain,) = json.loads(json.dumps(to_plain([copied(Case.TARGET_FAR, 4.0, WIDE)])))

    assert plain["case"] == "target far"
    assert plain["allowed"]["window"] == 320e6


def test_by_default_five_cases_of_uncompressed_records_go_over_150_ms() -> None:
    options = make_options(parse_arguments([]))

    assert (options.workload.name, options.workload.records) == ("1kb-none", 2_000_000)
    assert options.quality == LineQuality(0.150, loss=0.01, window_bytes=6_000_000)
    assert options.cases == tuple(Case)
    assert options.copiers == (Copier.MIRROR,)


def test_a_line_that_loses_nothing_has_no_lossy_cases() -> None:
    options = make_options(parse_arguments(["--loss", "0"]))

    assert options.cases == (Case.LOCAL, Case.SOURCE_FAR, Case.TARGET_FAR)


def test_cases_copiers_and_properties_can_be_chosen() -> None:
    options = make_options(
        parse_arguments(
            [
                "--cases",
                "local, target far",
                "--copiers",
                "mirror,mm2-tuned",
                "--set",
                "mirror.connections.per.broker=40",
            ]
        )
    )

    assert options.cases == (Case.LOCAL, Case.TARGET_FAR)
    assert options.copiers == (Copier.MIRROR, Copier.MM2_TUNED)
    assert options.settings == {"mirror.connections.per.broker": "40"}


@pytest.mark.parametrize(
    "arguments",
    [["--workload", "x"], ["--workload", "1kb-none,1kb-lz4"], ["--cases", "far"], ["--copiers", "x"], ["--set", "x"]],
)
def test_unknown_choices_are_refused(arguments: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no such|one workload|KEY=VALUE"):
        make_options(parse_arguments(arguments))
