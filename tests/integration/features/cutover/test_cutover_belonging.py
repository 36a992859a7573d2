"""Cutovers that would move a part of what belongs together, on real brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from mirror_lib.features.cutover.model import CutoverState, Step
from tests.support.cutovers import Migration, Reader, commit, migration, numbered
from tests.support.kafka import create_topic, produce
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

TOGETHER, UNCOMMITTED = "not split", "uncommitted topics"


@pytest.fixture
def moving(mirrored: MirroredTopic) -> Migration:
    """Two topics that are copied; only the first is meant to move."""
    for name in (mirrored.name, f"{mirrored.name}-stays"):
        create_topic(mirrored.source, name)
        produce(mirrored.source, name, numbered(0, 20))
    made = migration(mirrored.folder, mirrored.pair, f"{mirrored.name}.*", {"groups.exclude": "connect-.*"})
    made.there.run()
    return made


def test_a_group_with_a_topic_that_stays_stops_the_cutover_until_an_operator_names_it(
    moving: Migration, topic_name: str
) -> None:
    # Given a group that reads both topics, and one that the flow leaves out and that reads the one that moves
    group, sink = f"g-{topic_name}", f"connect-{topic_name}"
    commit(moving.pair.source, group, topic_name, {0: 10})
    commit(moving.pair.source, group, f"{topic_name}-stays", {0: 10})
    commit(moving.pair.source, sink, topic_name, {0: 10})

    # When only one of them moves
    careless = moving.define("careless", topic_name)
    done = moving.run(careless, until=Step.REHEARSE)

    # Then the inventory names both groups
    gate = moving.gates(careless, Step.INVENTORY)[TOGETHER]
    assert (done.state, done.step) == (CutoverState.FAILED, Step.INVENTORY)
    assert f"group {group} reads {topic_name}, and also {topic_name}-stays, which stays" in gate.what
    assert f"group {sink} reads {topic_name}, but does not move" in gate.what

    # And a cutover whose definition names them goes on to its end
    bold = moving.define("bold", topic_name, may_split=(group, "connect-.*"))
    moving.finish(bold)
    assert moving.gates(bold, Step.REHEARSE)[TOGETHER].passed


def test_groups_whose_members_have_committed_nothing_yet_or_nothing_in_a_topic_are_named(
    moving: Migration, topic_name: str
) -> None:
    source, other, partly = moving.pair.source, f"g-{topic_name}", f"partly-{topic_name}"
    commit(source, partly, f"{topic_name}-stays", {0: 0})
    readers = [Reader(source, group, topic_name, f"{topic_name}-stays") for group in (other, partly)]
    try:
        wait_for(lambda: all(len(each.values) >= 40 for each in readers))
        scope = moving.define("scope", topic_name)
        moving.run(scope, until=Step.INVENTORY)
        split = moving.define("split", topic_name, may_split=(other, partly))
        moving.run(split, until=Step.REHEARSE)
    finally:
        for reader in readers:
            reader.stop()

    assert other in moving.gates(scope, Step.INVENTORY)[TOGETHER].what
    assert not moving.gates(scope, Step.INVENTORY)[TOGETHER].passed
    # Without members, and without an offset there, nothing says later that it reads the topic.
    gates = moving.gates(split, Step.REHEARSE)
    assert [name for name, gate in gates.items() if not gate.passed] == [UNCOMMITTED]
    assert f"group {partly}, which reads {topic_name}." in gates[UNCOMMITTED].what
    assert f"{other} has members and has committed nothing yet" in gates[UNCOMMITTED].what
    assert "--may-reset" in gates[UNCOMMITTED].action


def test_a_group_that_appears_after_the_inventory_stops_the_cutover_before_the_writers_are_stopped(
    moving: Migration, topic_name: str
) -> None:
    scope = moving.define("scope", topic_name)
    assert moving.run(scope, until=Step.REHEARSE).state is CutoverState.RUNNING
    commit(moving.pair.source, f"g-{topic_name}", topic_name, {0: 20})
    commit(moving.pair.source, f"g-{topic_name}", f"{topic_name}-stays", {0: 20})

    done = moving.run(scope)

    assert (done.state, done.step) == (CutoverState.FAILED, Step.FREEZE)
    assert not moving.gates(scope, Step.FREEZE)[TOGETHER].passed


def test_transactions_over_a_topic_that_stays_are_named_when_they_have_long_ended(
    moving: Migration, topic_name: str
) -> None:
    # Given one producer whose transactions hold records of both topics, and one that writes to the first alone
    both, one = f"t-both-{topic_name}", f"t-one-{topic_name}"
    write_in_transaction(moving, both, topic_name, f"{topic_name}-stays")
    write_in_transaction(moving, one, topic_name)
    moving.there.run()

    scope = moving.define("scope", topic_name)
    moving.run(scope, until=Step.INVENTORY)

    gate = moving.gates(scope, Step.INVENTORY)[TOGETHER]
    assert not gate.passed
    assert f"transactional id {both} writes in transactions to {topic_name}, and also {topic_name}-stays" in gate.what
    assert one not in gate.what


def test_a_topic_that_has_moved_before_does_not_stay(moving: Migration, topic_name: str) -> None:
    # Given a group over two topics, one of which has moved by an operator's word
    group = f"g-{topic_name}"
    commit(moving.pair.source, group, topic_name, {0: 20})
    commit(moving.pair.source, group, f"{topic_name}-stays", {0: 20})
    moving.finish(moving.define("first", topic_name, may_split=(group,)))

    # Then the second moves without another word
    second = moving.define("second", f"{topic_name}-stays")
    moving.run(second, until=Step.INVENTORY)
    assert moving.gates(second, Step.INVENTORY)[TOGETHER].passed


def write_in_transaction(moving: Migration, name: str, *topics: str) -> None:
    producer = Producer(
        {"bootstrap.servers": moving.pair.source.bootstrap_servers, "transactional.id": name, "log_level": 3}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for topic in topics:
        producer.produce(topic, b"paid", partition=0)
    producer.commit_transaction(30)
