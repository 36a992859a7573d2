"""What copies over a distance came to, against the local one and against what the line allows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tools.bench.copiers.settings import Copier
from tools.bench.distance.model import Allowed, Case
from tools.bench.distance.results import Copied, goals, standings, to_plain

WIDE = Allowed(8, window=320e6, loss=None, width=None)
NARROW = Allowed(8, window=320e6, loss=1e6, width=None)


def copied(case: Case, seconds: float, allowed: Allowed | None = None, *, megabytes: int = 100) -> Copied:
    size = megabytes * 1_000_000
    return Copied(
        case, Copier.MIRROR, 1, size // 1000, size, size, allowed, seconds=0.5, copy_seconds=seconds, equal=True
    )


LOCAL = copied(Case.LOCAL, 1.0)


def test_a_rate_is_a_share_of_the_local_one_and_of_what_the_line_allows() -> None:
    _, far = standings([LOCAL, copied(Case.SOURCE_FAR, 4.0, WIDE)])

    assert far.records_per_second == pytest.approx(25_000)
    assert far.megabytes_per_second == pytest.approx(25)
    assert far.of_local == pytest.approx(0.25)
    assert far.of_allowed == pytest.approx(25 / 320)


def test_what_is_read_before_the_first_record_arrives_counts_as_well() -> None:
    # The whole copy waits in memory and arrives in a moment: the window alone would call that fast.
    _, far = standings([LOCAL, replace(copied(Case.TARGET_FAR, 4.0, WIDE), seconds=0.25)])
    # Of MirrorMaker only the window is known.
    (theirs,) = standings([replace(LOCAL, copier=Copier.MM2_DEFAULT, seconds=5.0, copy_seconds=None)])

    assert far.window_of_local == pytest.approx(2.0)
    assert far.of_local == pytest.approx(0.25)
    assert theirs.megabytes_per_second == pytest.approx(20)


def test_rounds_count_by_their_median() -> None:
    (local,) = standings([LOCAL, replace(LOCAL, round=2, copy_seconds=10.0), replace(LOCAL, round=3, copy_seconds=2.0)])

    assert local.megabytes_per_second == pytest.approx(50)


def test_a_copy_must_have_half_of_the_local_rate_or_of_what_a_narrow_line_allows() -> None:
    slow, fast = goals([LOCAL, copied(Case.SOURCE_FAR, 4.0, WIDE), copied(Case.TARGET_FAR, 1.9, WIDE)])
    (narrow,) = goals([LOCAL, copied(Case.TARGET_LOSSY, 25.0, NARROW, megabytes=20)])
    (alone,) = goals([copied(Case.TARGET_FAR, 25.0, WIDE)])

    assert [goal.value for goal in (slow, fast, narrow)] == pytest.approx([0.25, 1 / 1.9, 0.8])
    assert [goal.reached for goal in (slow, fast, narrow)] == [False, True, True]
    assert narrow.detail == "0.8% of local; the line allows 1.0%"
    assert alone.reached is None


def test_a_failed_copy_has_no_rate_and_reaches_nothing() -> None:
    failed = Copied(Case.SOURCE_LOSSY, Copier.MIRROR, 1, 1_000, 1_000_000, 1_000_000, NARROW, failure="no answer")

    standing, (goal,) = standings([LOCAL, failed])[1], goals([LOCAL, failed])

    assert standing.records_per_second is standing.of_local is standing.of_allowed is None
    assert not standing.equal
    assert goal.reached is False
    assert json.loads(json.dumps(to_plain([failed])))[0]["failure"] == "no answer"
