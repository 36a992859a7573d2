"""When a run looks for new records again (`mirror.run.poll.seconds`, `mirror.run.round.seconds`)."""

from __future__ import annotations

import threading
import time

import pytest

from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.planning import rate_limits
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import copy_here
from tests.support.kafka import consume, records
from tests.support.mirrored_topic import MirroredTopic

_BUDGET = 6.0


def test_a_run_copies_what_comes_after_it_had_caught_up(mirrored: MirroredTopic) -> None:
    mirrored.create(records(100))
    settings = {"mirror.run.max.seconds": str(_BUDGET), "mirror.run.poll.seconds": "0.2"}
    flow = mirrored.flow(settings)
    flow.sync_topics()

    def write_later() -> None:
        while not any(row.state == "done" for row in flow.ledger.partition_runs("polling")):
            time.sleep(0.05)
        # Long enough for a round that finds nothing.
        time.sleep(1.0)
        mirrored.produce(records(50, start=100))

    writer = threading.Thread(target=write_later)
    writer.start()
    report = flow.run(run_id="polling", sync=False)
    writer.join()

    assert report.records == 150
    assert report.rounds > 2
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)


def test_without_it_a_run_ends_when_it_has_caught_up_however_much_time_is_left(mirrored: MirroredTopic) -> None:
    mirrored.create(records(100))
    flow = mirrored.flow({"mirror.run.max.seconds": "3600"})

    report = flow.run()

    assert (report.records, report.rounds) == (100, 2)


def test_a_pause_that_is_longer_than_the_budget_is_not_begun(mirrored: MirroredTopic) -> None:
    mirrored.create()
    settings = {"mirror.run.max.seconds": "60", "mirror.run.poll.seconds": "61"}
    flow = mirrored.flow(settings)

    assert flow.run().rounds == 1


@pytest.mark.parametrize(
    ("round_seconds", "rounds"),
    [
        # The third would have to wait for longer than there is time, so the next run copies what it would have.
        ("3600", 2),
        # The writer stops after the fourth; the fifth finds nothing.
        ("0", 5),
    ],
)
def test_rounds_of_a_run_whose_writers_go_on_begin_so_far_apart(
    round_seconds: str, rounds: int, mirrored: MirroredTopic
) -> None:
    mirrored.create(records(10))
    settings = {"mirror.run.max.seconds": "600", "mirror.run.round.seconds": round_seconds}
    flow = mirrored.flow(settings)
    copied = 0

    def copy_while_more_is_written(job: CopyJob) -> list[PartitionResult]:
        nonlocal copied
        copied += 1
        if copied < 4:
            mirrored.produce(records(10, start=10 * copied))
        return copy_here(job)

    report = flow.run(runner=copy_while_more_is_written)

    assert report.rounds == rounds
    flow.run(sync=False)
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)


@pytest.mark.parametrize(("longest", "elapsed"), [("0.001", 0.0), ("1000", 1000.0)])
def test_a_long_copy_ends_in_good_time_and_the_next_run_continues(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch, longest: str, elapsed: float
) -> None:
    mirrored.create(records(400))
    settings = {"mirror.run.longest.seconds": longest}
    flow = mirrored.flow(settings)
    size = plan_flow(flow.config, RunOptions(), flow.ledger).estimated_bytes
    monkeypatch.setattr(rate_limits, "_FIRST_SLICE_BYTES", size // 4)

    # Earlier attempts of the same run may have used the time.
    first = flow.run(elapsed_seconds=elapsed)
    assert (first.exit_code, first.rounds) == (0, 1)
    assert 0 < first.records < 400
    assert any("mirror.run.longest.seconds" in warning for warning in first.warnings)
    # Without the limit a run copies all of it, in several rounds.
    rest = flow.with_settings(run_longest_seconds=0.0).run()

    assert first.records + rest.records == 400
    assert rest.rounds > 1
    assert not any("mirror.run.longest.seconds" in warning for warning in rest.warnings)
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
