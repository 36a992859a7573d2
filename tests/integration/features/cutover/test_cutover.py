"""Cutovers on real brokers: everything arrives once, groups go on where they stood, and no failed gate is passed."""

from __future__ import annotations

import pytest

from mirror_lib.features.cutover.model import CutoverState, Step, StepState, Style
from mirror_lib.features.cutover.order import STEPS, last_attempts, writers_stood_still
from mirror_lib.features.cutover.states.cutover import State
from mirror_lib.features.cutover.states.situation import NotNowError
from mirror_lib.features.cutover.steps.rollback import PointOfNoReturnError, roll_back
from tests.support.cutovers import (
    Migration,
    Reader,
    Writer,
    commit,
    committed,
    has_members,
    migration,
    numbered,
    numbers,
)
from tests.support.kafka import create_topic, produce
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

PARTITIONS = 2


def test_live_writers_and_a_group_move_without_a_record_lost_or_read_twice(moving: Migration, topic_name: str) -> None:
    # Given a writer and a reader at work on the source
    writer = Writer(moving.pair.source, topic_name, PARTITIONS, start=100)
    reader = Reader(moving.pair.source, f"g-{topic_name}", topic_name)
    scope = moving.define("scope", topic_name)
    assert moving.run(scope, until=Step.REHEARSE).state is CutoverState.RUNNING

    # When they stop and everything else is agreed on
    waiting = moving.run(scope)
    assert (waiting.state, waiting.step) == (CutoverState.WAITING, Step.FREEZE)
    written = writer.stop()
    read_there = reader.stop()
    done = moving.finish(scope)

    # Then everything is on the target once, and the group reads on exactly behind what it had read
    assert moving.values(topic_name) == numbers((0, written))
    more = Writer(moving.pair.target, topic_name, PARTITIONS, start=written)
    second = Reader(moving.pair.target, f"g-{topic_name}", topic_name)
    try:
        wait_for(lambda: len(read_there) + len(second.values) >= written + 40)
    finally:
        total = more.stop()
        wait_for(lambda: len(read_there) + len(second.values) >= total)
        read_here = second.stop()
    assert sorted([*read_there, *read_here]) == numbers((0, total))
    assert writers_stood_still(done.attempts) is not None


def test_a_finished_cutover_is_copied_no_more_and_not_rolled_back_and_says_what_brings_it_home(
    moving: Migration, topic_name: str
) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope)

    report = moving.there.run(sync=False)
    with pytest.raises(NotNowError, match="can no longer be rolled back") as refused:
        roll_back(moving.context(scope))

    assert (report.records, report.exit_code) == (0, 0)
    assert len(moving.values(topic_name)) == 100
    assert refused.value.action == "Fail back with `mirror cutover back scope`."


def test_what_changed_since_comes_home_by_a_failback_and_nothing_else(moving: Migration, topic_name: str) -> None:
    # Given a topic that has moved, and a group that read on on the target
    group = f"g-{topic_name}"
    commit(moving.pair.source, group, topic_name, {0: 10, 1: 20})
    scope = moving.define("scope", topic_name)
    moving.finish(scope)
    assert committed(moving.pair.target, group, topic_name, PARTITIONS) == {0: 10, 1: 20}
    produce(moving.pair.target, topic_name, numbered(100, 140, PARTITIONS))
    commit(moving.pair.target, group, topic_name, {0: 60, 1: 70})

    # When the flow back runs, and a failback is taken to its end
    brought = moving.back.run()
    moving.finish(moving.fail_back("scope"))

    # Then only the 40 new records came, and the group goes on on the source where it stood on the target
    assert brought.records == 40
    assert moving.values(topic_name, target=False) == numbers((0, 140))
    assert committed(moving.pair.source, group, topic_name, PARTITIONS) == {0: 60, 1: 70}

    # And the flow there goes on with what is written to the source from now on
    produce(moving.pair.source, topic_name, numbered(140, 150, PARTITIONS))
    assert moving.there.run().records == 10
    assert moving.back.run().records == 0
    assert moving.values(topic_name) == numbers((0, 150))


def test_names_of_the_default_policy_come_home_by_a_rename(mirrored: MirroredTopic) -> None:
    # Given a topic that the default policy calls A.<name>, and a flow back that calls it <name> again
    mirrored.create(numbered(0, 100, PARTITIONS), partitions=PARTITIONS)
    remote = mirrored.remote
    moving = migration(
        mirrored.folder,
        mirrored.pair,
        mirrored.name,
        {
            "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
            "B->A.topics": remote,
            "B->A.mirror.topics.rename": f"{remote}:{mirrored.name}",
        },
    )
    moving.there.run()
    group = f"g-{mirrored.name}"
    commit(mirrored.source, group, mirrored.name, {0: 10, 1: 20})

    # When it moves, is written to on the target, and a failback is taken to its end
    moving.finish(moving.define("scope", mirrored.name))
    produce(mirrored.target, remote, numbered(100, 140, PARTITIONS))
    commit(mirrored.target, group, remote, {0: 60, 1: 70})
    brought = moving.back.run()
    moving.finish(moving.fail_back("scope"))

    # Then only the new records came, the group stands where it stood, and nothing goes in a circle
    assert brought.records == 40
    assert moving.values(mirrored.name, target=False) == numbers((0, 140))
    assert committed(mirrored.source, group, mirrored.name, PARTITIONS) == {0: 60, 1: 70}
    mirrored.produce(numbered(140, 150, PARTITIONS))
    assert (moving.there.run().records, moving.back.run().records) == (10, 0)
    assert moving.values(remote) == numbers((0, 150))


@pytest.mark.parametrize("style", list(Style))
def test_a_cutover_may_stop_and_go_on_at_any_step(moving: Migration, topic_name: str, style: Style) -> None:
    commit(moving.pair.source, f"g-{topic_name}", topic_name, {0: 50, 1: 50})
    scope = moving.define("scope", topic_name, style=style)

    for step in STEPS[style]:
        done = moving.run_to_the_end(scope, until=step)
        assert moving.last(scope, step).state is StepState.PASSED, [str(gate) for gate in done.attempts[-1].gates]

    assert moving.where(scope).state is CutoverState.FINISHED
    assert committed(moving.pair.target, f"g-{topic_name}", topic_name, PARTITIONS) == {0: 50, 1: 50}


@pytest.mark.parametrize("until", [Step.VERIFY, Step.SWITCH])
def test_a_writer_that_comes_back_after_the_cut_opens_the_freeze_again(
    moving: Migration, topic_name: str, until: Step
) -> None:
    # Given a cutover that has cut
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=until)

    # When somebody writes to the source, and the cutover goes on
    produce(moving.pair.source, topic_name, numbered(100, 105, PARTITIONS))
    waiting = moving.run(scope)

    # Then a person is asked once more, and what was written arrives too
    assert (waiting.state, waiting.step) == (CutoverState.WAITING, Step.FREEZE)
    moving.finish(scope)
    assert moving.last(scope, Step.DRAIN).number == 2
    assert len(moving.values(topic_name)) == 105


def test_a_writer_that_does_not_stop_is_noticed_before_the_switch(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name, quiet_seconds=1.5, drain_seconds=3.0)
    writer = Writer(moving.pair.source, topic_name, PARTITIONS, start=100)
    try:
        done = moving.run_to_the_end(scope)
    finally:
        written = writer.stop()

    assert (done.state, done.step) == (CutoverState.FAILED, Step.DRAIN)
    assert not moving.ledger.handovers.handed_over()

    # Then the word that the writers are stopped does not count any more, and the time is that of the next word
    assert done.present.state is State.STOPPED
    assert moving.last(scope, Step.FREEZE).state is StepState.UNDONE
    noticed = last_attempts(done.attempts)[Step.DRAIN].finished_at
    asked = moving.run(scope)
    assert (asked.state, asked.step) == (CutoverState.WAITING, Step.FREEZE)
    finished = moving.finish(scope)
    last = last_attempts(finished.attempts)
    word, released = last[Step.FREEZE].finished_at, last[Step.RELEASE].finished_at
    assert len(moving.values(topic_name)) == written
    assert noticed is not None
    assert word is not None
    assert released is not None
    assert noticed < word
    assert writers_stood_still(finished.attempts) == (released - word).total_seconds()


def test_what_is_written_between_the_word_and_the_drain_has_the_freeze_asked_again(
    moving: Migration, topic_name: str
) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.FREEZE)
    produce(moving.pair.source, topic_name, numbered(100, 103, PARTITIONS))

    waiting = moving.run(scope)

    assert (waiting.state, waiting.step) == (CutoverState.WAITING, Step.FREEZE)
    undone = [each for each in waiting.attempts if each.state is StepState.UNDONE]
    assert [gate.what for each in undone for gate in each.gates if not gate.passed] == [
        "3 offsets were written to the source since the writers were confirmed as stopped: "
        f"{topic_name}-0, {topic_name}-1"
    ]
    moving.finish(scope)


def test_a_cutover_that_was_refused_at_its_inventory_is_not_in_the_way_of_another(
    moving: Migration, topic_name: str
) -> None:
    first = moving.define("first", topic_name)
    moving.run(first, until=Step.INVENTORY)
    rival = moving.define("rival", topic_name)
    refused = moving.run(rival)

    again = moving.run(first, until=Step.INVENTORY)

    assert (refused.state, refused.step) == (CutoverState.FAILED, Step.INVENTORY)
    assert moving.gates(rival, Step.INVENTORY)["only cutover"].what == "1: first (stopped)"
    assert again.state is CutoverState.RUNNING
    assert moving.last(first, Step.INVENTORY).state is StepState.PASSED


def test_what_came_home_from_a_cutover_that_never_ended_can_move_again(moving: Migration, topic_name: str) -> None:
    # Given a cutover whose clients never arrived, and a failback
    scope = moving.define("scope", topic_name, watch_seconds=0.1)
    assert (moving.run_to_the_end(scope).step, moving.where(scope).state) == (Step.WATCH, CutoverState.FAILED)
    produce(moving.pair.target, topic_name, numbered(100, 110, PARTITIONS))
    moving.finish(moving.fail_back("scope", watch_seconds=0.0))

    moving.finish(moving.define("again", topic_name))


def test_readers_on_the_source_keep_their_group_from_being_moved(moving: Migration, topic_name: str) -> None:
    reader = Reader(moving.pair.source, f"g-{topic_name}", topic_name)
    try:
        wait_for(lambda: len(reader.values) >= 100)
        scope = moving.define("scope", topic_name)
        # A position of the group is needed for it to be found: its first reader has left one.
        reader.stop()
        again = Reader(moving.pair.source, f"g-{topic_name}", topic_name)
        wait_for(lambda: has_members(moving.pair.source, f"g-{topic_name}"))
        done = moving.run_to_the_end(scope)
        again.stop()
    finally:
        reader.stop()

    assert (done.state, done.step) == (CutoverState.FAILED, Step.TRANSLATE)
    moving.finish(scope)


def test_a_cutover_can_be_taken_back_before_anybody_writes_to_the_target(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.RELEASE)

    undone = roll_back(moving.context(scope))

    assert all(gate.passed for gate in undone)
    assert moving.where(scope).state is CutoverState.ROLLED_BACK
    produce(moving.pair.source, topic_name, numbered(100, 110, PARTITIONS))
    assert moving.there.run().records == 10


def test_a_cutover_cannot_be_taken_back_once_somebody_has_written_to_the_target(
    moving: Migration, topic_name: str
) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.RELEASE)
    produce(moving.pair.target, topic_name, numbered(100, 101))

    with pytest.raises(PointOfNoReturnError, match="mirror cutover back"):
        roll_back(moving.context(scope))

    assert moving.ledger.handovers.handed_over()


def test_without_a_way_back_the_preflight_fails_unless_that_is_wanted(mirrored: MirroredTopic) -> None:
    mirrored.create()
    made = migration(mirrored.folder, mirrored.pair, mirrored.name, {"B->A.enabled": "false"})
    made.there.run()

    careful = made.run(made.define("careful", mirrored.name))
    bold = made.run_to_the_end(made.define("bold", mirrored.name, require_failback=False))

    assert (careful.state, careful.step) == (CutoverState.FAILED, Step.PREFLIGHT)
    assert bold.state is CutoverState.FAILED  # The first one still has these topics.
    assert bold.step is Step.INVENTORY
    roll_back(made.context(made.known("careful")))
    made.finish(made.known("bold"))


def test_a_topic_that_appears_later_makes_the_inventory_be_taken_again(mirrored: MirroredTopic) -> None:
    mirrored.create()
    made = migration(mirrored.folder, mirrored.pair, f"{mirrored.name}.*")
    made.there.run()
    scope = made.define("scope", f"{mirrored.name}.*")
    made.run(scope, until=Step.REHEARSE)

    create_topic(mirrored.source, f"{mirrored.name}-2")
    made.there.run()
    made.run(scope, until=Step.INVENTORY)

    found = made.last(scope, Step.INVENTORY)
    assert [topic["source"] for topic in found.facts["topics"]] == [mirrored.name, f"{mirrored.name}-2"]
    assert made.last(scope, Step.REHEARSE).state is StepState.UNDONE
