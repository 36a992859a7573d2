"""Records that are written to the source after a cutover: everybody says so, and a command brings them over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.features.backfill.define import prepare_backfill, request_of
from mirror_lib.features.backfill.run import run_backfill
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.ledger.rows import GapState
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.console import Console
from tests.support.cutovers import Migration, migration, numbered, numbers
from tests.support.flows import copy_here
from tests.support.kafka import create_topic, produce, transaction
from tests.support.mirrored_topic import MirroredTopic

PARTITIONS = 2
LATE = "written-after-cutover"


@pytest.fixture(params=[PARTITIONS])
def moved(mirrored: MirroredTopic, request: pytest.FixtureRequest) -> Iterator[Migration]:
    """A topic with 100 records, in as many partitions as the parameter says, whose cutover is finished."""
    mirrored.create(numbered(0, 100, request.param), partitions=PARTITIONS)
    made = migration(mirrored.folder, mirrored.pair, f"{mirrored.name}(-other)?")
    made.there.run()
    made.finish(made.define("scope", mirrored.name))
    yield made
    made.ledger.close()


def fetch(moved: Migration, topic: str) -> RunReport:
    """What `mirror backfill run --from cutover --into-suffix .late` does, without Spark."""
    flow = moved.there.config
    request = request_of(flow, [topic], "cutover", "latest", into_suffix=".late")
    with FlowClusters.connect(flow) as clusters:
        name = prepare_backfill(flow, clusters, moved.ledger, request, None)[0].backfill.name
    return run_backfill(
        flow, name, ledger=moved.ledger, make_runner=lambda: copy_here, options=RunOptions(trigger="ann")
    )


def reasons(report: RunReport) -> set[str]:
    return {error.reason for error in report.errors}


def test_records_written_after_a_cutover_are_told_by_run_plan_and_observation(
    moved: Migration, topic_name: str
) -> None:
    produce(moved.pair.source, topic_name, numbered(900, 910, PARTITIONS))

    report = moved.there.run(sync=False)
    plan = plan_flow(moved.there.config, RunOptions(), moved.ledger)
    observed = observe_flow(moved.there.config, moved.ledger)

    assert (report.records, report.exit_code, reasons(report)) == (0, 3, {LATE})
    (problem, _) = plan.problems
    assert (problem.error.reason, problem.loss and problem.loss.next_offset - problem.loss.first_offset) == (LATE, 5)
    for words in ("offsets 50 to 54", "cutover scope", "mirror backfill run", "--from cutover", "mirror gaps accept"):
        assert words in f"{problem.error.what} {problem.error.action}"
    assert [(row.partition, row.reason) for row in observed.partitions] == [(0, LATE), (1, LATE)]
    assert observed.flow.stalled == PARTITIONS
    assert [(gap.cause, gap.first_offset, gap.next_offset) for gap in moved.ledger.open_gaps("A->B")] == [
        (LATE, 50, 55)
    ] * PARTITIONS
    # A run that is limited to other topics says nothing of them.
    other = f"{topic_name}-other"
    create_topic(moved.pair.source, other)
    assert moved.there.run(topics=(other,)).exit_code == 0


def test_given_a_flow_back_whose_last_run_was_killed_then_it_is_said_that_late_records_cannot_be_told(
    moved: Migration, topic_name: str
) -> None:
    produce(moved.pair.target, topic_name, numbered(200, 210, PARTITIONS))

    def killed(job: CopyJob) -> list[PartitionResult]:
        copy_here(job)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        moved.back.run(runner=killed)
    produce(moved.pair.source, topic_name, numbered(900, 910, PARTITIONS))

    report = moved.there.run(sync=False)

    assert report.errors == ()
    (note,) = (each for each in report.warnings if "after the cutover is unknown" in each)
    assert f"{topic_name}-0, {topic_name}-1" in note
    # The named flow finds out: its own records are known then, and it stops before the others.
    assert reasons(moved.back.run()) == {"target-diverged"}


def test_the_named_command_brings_them_to_the_target_and_nobody_complains_any_more(
    moved: Migration, topic_name: str
) -> None:
    produce(moved.pair.source, topic_name, numbered(900, 910, PARTITIONS))
    moved.there.run(sync=False)

    first = fetch(moved, topic_name)

    assert (first.records, first.exit_code) == (10, 0)
    late = f"{topic_name}.late"
    assert moved.values(late) == numbers((900, 910))
    assert moved.there.run(sync=False).exit_code == 0
    assert {(gap.state, gap.decided_by) for gap in moved.ledger.gaps("A->B")} == {(GapState.RECOPIED.value, "ann")}

    # And again, for a writer that nobody has stopped
    produce(moved.pair.source, topic_name, numbered(910, 920, PARTITIONS))
    assert reasons(moved.there.run(sync=False)) == {LATE}
    assert fetch(moved, topic_name).records == 10
    assert moved.values(late) == numbers((900, 920))
    assert moved.there.run(sync=False).exit_code == 0


def test_they_can_be_left_where_they_are(moved: Migration, topic_name: str) -> None:
    produce(moved.pair.source, topic_name, numbered(900, 910, PARTITIONS))
    moved.there.run(sync=False)

    # Not into the topics that have moved
    operator = Console(moved.there.path)
    into_same = operator.say("backfill", "plan", "--topics", topic_name, "--from", "cutover", "--into-same")
    assert into_same.exit_code == 2
    assert "the suffix .late" in into_same.document["error"]["action"]
    refused = operator.say("gaps", "recopy", "--all", "--yes")
    accepted = operator.say("gaps", "accept", "--all", "--yes")

    assert (refused.exit_code, accepted.exit_code, accepted.document["done"]) == (3, 0, PARTITIONS)
    assert moved.there.run(sync=False).exit_code == 0


def test_the_flow_back_stops_before_them_and_continues_behind_them_once_they_are_fetched(
    moved: Migration, topic_name: str
) -> None:
    # Given a writer that stayed, and new records on the target
    produce(moved.pair.source, topic_name, numbered(900, 910, PARTITIONS))
    produce(moved.pair.target, topic_name, numbered(100, 140, PARTITIONS))

    stopped = moved.back.run()

    assert (stopped.records, stopped.exit_code, reasons(stopped)) == (0, 3, {LATE})
    assert "--flow 'A->B'" in stopped.errors[0].action
    assert fetch(moved, topic_name).records == 10
    assert moved.back.run().records == 40
    expected = numbers((0, 140), (900, 910))
    assert moved.values(topic_name, target=False) == expected
    # What the flow back has written is no late record
    assert moved.there.run(sync=False).exit_code == 0

    # And the same once more, behind what came home
    produce(moved.pair.source, topic_name, numbered(910, 920, PARTITIONS))
    assert reasons(moved.there.run(sync=False)) == {LATE}
    assert fetch(moved, topic_name).records == 10
    produce(moved.pair.target, topic_name, numbered(140, 150, PARTITIONS))
    assert moved.back.run().records == 10
    assert moved.values(topic_name, target=False) == numbers((0, 150), (900, 920))


def test_given_only_an_aborted_transaction_after_the_cutover_then_no_run_of_either_flow_stops(
    moved: Migration, topic_name: str
) -> None:
    transaction(moved.pair.source, topic_name, [b"never committed"], commit=False)
    produce(moved.pair.target, topic_name, numbered(100, 140, PARTITIONS))

    assert moved.there.run(sync=False).exit_code == 0
    assert moved.back.run().records == 40
    assert moved.there.run(sync=False).exit_code == 0
    transaction(moved.pair.source, topic_name, [b"never committed"], commit=False)
    produce(moved.pair.target, topic_name, numbered(140, 150, PARTITIONS))
    assert moved.back.run().records == 10
    assert moved.values(topic_name, target=False) == numbers((0, 150))


@pytest.mark.parametrize(
    "moved",
    [pytest.param(2, id="every partition had records"), pytest.param(1, id="a partition was empty")],
    indirect=True,
)
def test_a_failback_passes_by_records_that_were_left_where_they_are(moved: Migration, topic_name: str) -> None:
    produce(moved.pair.source, topic_name, numbered(900, 910, PARTITIONS))
    moved.there.run(sync=False)
    Console(moved.there.path).say("gaps", "accept", "--all", "--yes")
    produce(moved.pair.target, topic_name, numbered(100, 140, PARTITIONS))

    moved.finish(moved.fail_back("scope"))

    expected = numbers((0, 140), (900, 910))
    assert moved.values(topic_name, target=False) == expected
