"""Whoever does what a failed gate of a cutover says, and takes it on again, comes to its end."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.loader import load
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.cutover.model import CutoverDefinition, CutoverState, Fence, Gate, Step, StepState, Style
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from tests.support.cutovers import Migration, Reader, commit, has_members, migration, numbered
from tests.support.flows import Flow
from tests.support.kafka import (
    add_partitions,
    consume,
    create_topic,
    delete_records,
    delete_topic,
    open_transaction,
    produce,
    set_config,
)
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

PARTITIONS = 2


def stopped_by(moving: Migration, scope: CutoverDefinition, step: Step, name: str, **how: Any) -> Gate:
    """Take it on until a gate stops it, which is the only one."""
    done = moving.run_to_the_end(scope, **how)
    assert (done.state, done.step) == (CutoverState.FAILED, step), done.attempts[-1].gates
    assert failed_gates(moving, scope, step) == {name}
    return moving.gates(scope, step)[name]


def failed_gates(moving: Migration, scope: CutoverDefinition, step: Step) -> set[str]:
    return {name for name, gate in moving.gates(scope, step).items() if not gate.passed}


def edit(moving: Migration, was: str, now: str) -> None:
    """Change the configuration file."""
    text = moving.there.path.read_text()
    assert was in text
    moving.there.path.write_text(text.replace(was, now))
    moving.config = load(moving.there.path)


def test_topics_that_do_not_exist(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", f"{topic_name}-nothing")
    gate = stopped_by(moving, scope, Step.INVENTORY, "topics")

    assert "roll this cutover back and start a new one with another name" in gate.action
    roll_back(moving.context(scope))
    moving.finish(moving.define("scope-2", topic_name))


def test_a_topic_that_the_flow_has_copied_and_selects_no_longer(mirrored: MirroredTopic) -> None:
    other = f"{mirrored.name}-other"
    mirrored.create(numbered(0, 20, PARTITIONS), partitions=PARTITIONS)
    create_topic(mirrored.source, other)
    produce(mirrored.source, other, numbered(0, 10))
    moving = migration(mirrored.folder, mirrored.pair, f"{mirrored.name}.*")
    moving.there.run()
    delete_topic(mirrored.source, other)

    scope = moving.define("scope", f"{mirrored.name}.*")
    gate = stopped_by(moving, scope, Step.INVENTORY, "no longer selected")

    assert f"{other}-0: the topic was deleted on A" in gate.what
    moving.there.run()
    words = ["gaps", "accept", "--topic", other, "--config", str(moving.there.path), "--flow", "A->B", "--yes"]
    assert CliRunner().invoke(app, words).exit_code == 0
    moving.finish(scope)
    moving.ledger.close()


def test_each_gate_of_the_preflight(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name)

    # Partitions that the target does not have
    add_partitions(moving.pair.source, topic_name, PARTITIONS + 1)
    stopped_by(moving, scope, Step.PREFLIGHT, "target topics")
    moving.there.run()

    # A target that takes only small records
    produce(moving.pair.source, topic_name, numbered(100, 102, PARTITIONS))
    set_config(moving.pair.target, topic_name, "max.message.bytes", "1000")
    stopped_by(moving, scope, Step.PREFLIGHT, "limits")
    set_config(moving.pair.target, topic_name, "max.message.bytes", "1048588")

    # A flow that does not translate groups
    off = "emit.checkpoints.enabled = false\nclusters"
    edit(moving, "clusters", off)
    stopped_by(moving, scope, Step.PREFLIGHT, "group translation")
    edit(moving, off, "clusters")

    # What the plan says besides these stops nothing: a literal name that the source does not have
    edit(moving, f"A->B.topics = {topic_name}", f"A->B.topics = {topic_name},not-{topic_name}")

    # A file without the failback flow
    edit(moving, "B->A.enabled = true", "B->A.enabled = false")
    stopped_by(moving, scope, Step.PREFLIGHT, "failback")
    edit(moving, "B->A.enabled = false", "B->A.enabled = true")

    moving.finish(scope)


def test_given_a_source_log_of_the_same_length_that_is_another_then_nothing_is_switched(
    moving: Migration, topic_name: str
) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.VERIFY)
    held = consume(moving.pair.source, topic_name)
    delete_topic(moving.pair.source, topic_name)
    create_topic(moving.pair.source, topic_name, partitions=PARTITIONS)
    produce(moving.pair.source, topic_name, held)

    done = moving.run_to_the_end(scope)

    # What the cut says holds no more, and is not recorded again.
    undone = [each for each in done.attempts if each.state is StepState.UNDONE and each.step is Step.DRAIN]
    assert [gate.name for each in undone for gate in each.gates if not gate.passed] == ["same logs"]
    assert (done.state, done.step) == (CutoverState.FAILED, Step.DRAIN)
    assert "source-recreated" in moving.gates(scope, Step.DRAIN)["copied"].what


def test_a_transaction_that_is_open_on_the_source(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name, drain_seconds=1.0, may_split=(".*",))
    producer = open_transaction(moving.pair.source, topic_name, [b"open"], name=f"slow-{topic_name}")
    moving.run_to_the_end(scope)
    assert not (gate := moving.gates(scope, Step.DRAIN)["transactions"]).passed
    # Those who are to stop the writers have read it before.
    for step in (Step.PREFLIGHT, Step.REHEARSE, Step.DRAIN):
        assert f"transactional id slow-{topic_name}" in moving.gates(scope, step)["transactions"].what
    assert "1 record of open transactions" in moving.gates(scope, Step.REHEARSE)["aborted records"].what

    producer.abort_transaction(30)
    moving.run_to_the_end(scope, until=Step.VERIFY)
    assert "1 record of aborted transactions" in moving.gates(scope, Step.VERIFY)["aborted records"].what

    # What the gate says for a transaction that is aborted leads to what a committed reader of the source sees.
    assert "A.consumer.isolation.level = read_committed" in gate.action
    roll_back(moving.context(scope))
    edit(moving, "clusters", "A.consumer.isolation.level = read_committed\nclusters")
    delete_topic(moving.pair.target, topic_name)
    flow = Flow(moving.config.flow("A->B"), moving.ledger, moving.there.path)
    assert flow.run().exit_code == 3
    arguments = ["gaps", "recopy", "--all", "--yes", "--config", str(flow.path), "--flow", "A->B"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert flow.run().exit_code == 0
    moving.finish(moving.define("scope-2", topic_name, may_split=(".*",)))
    assert moving.values(topic_name) == moving.values(topic_name, target=False)


def test_readers_that_have_not_read_the_source_to_its_end(moving: Migration, topic_name: str) -> None:
    commit(moving.pair.source, f"g-{topic_name}", topic_name, {0: 40, 1: 50})
    scope = moving.define("scope", topic_name, style=Style.PRODUCERS_FIRST)
    stopped_by(moving, scope, Step.TRANSLATE, "source read to the end")

    commit(moving.pair.source, f"g-{topic_name}", topic_name, {0: 50, 1: 50})
    moving.finish(scope)


def test_each_way_in_which_a_group_is_not_ready(moving: Migration, topic_name: str) -> None:
    group = f"g-{topic_name}"
    commit(moving.pair.source, group, topic_name, {0: 40, 1: 50})
    scope = moving.define("scope", topic_name)

    # Members on the target
    reader = Reader(moving.pair.target, group, topic_name)
    try:
        wait_for(lambda: has_members(moving.pair.target, group))
        stopped_by(moving, scope, Step.REHEARSE, "groups ready")
    finally:
        reader.stop()
    # It has read further than the source's group, which a person resets.
    commit(moving.pair.target, group, topic_name, {0: 40, 1: 50})

    # After the log end, as after an unclean election or a replicator that did not translate offsets (KAFKA-12635)
    commit(moving.pair.source, group, topic_name, {0: 500, 1: 50})
    gate = stopped_by(moving, scope, Step.REHEARSE, "groups ready")
    assert f"{group} on {topic_name}-0 (beyond-source-end)" in gate.what

    # Records that it would skip
    commit(moving.pair.source, group, topic_name, {0: 40, 1: 50})
    delete_records(moving.pair.target, topic_name, before=45)
    stopped_by(moving, scope, Step.REHEARSE, "skipped")
    commit(moving.pair.source, group, topic_name, {0: 50, 1: 50})

    moving.finish(scope)


def test_a_fence_for_a_writer_that_is_not_a_principal(moving: Migration, topic_name: str) -> None:
    """Brokers before Kafka 4.0 accept such an ACL, which denies nothing; later ones refuse it (KAFKA-18051)."""
    for writer in ("CN=app,OU=ops", "app", ":app", "User:"):
        with pytest.raises(ConfigurationError, match="is not a principal") as refused:
            moving.define("scope", topic_name, fence=Fence.ACL, writers=("User:CN=web,OU=ops", writer))

        assert "User:app" in refused.value.action, writer


def test_clients_that_have_not_arrived(moving: Migration, topic_name: str) -> None:
    group = f"g-{topic_name}"
    commit(moving.pair.source, group, topic_name, {0: 50, 1: 50})
    there = Reader(moving.pair.source, group, topic_name)
    wait_for(lambda: has_members(moving.pair.source, group))
    scope = moving.define("scope", topic_name, watch_seconds=0.1)
    moving.run(scope, until=Step.REHEARSE)
    there.stop()
    moving.run_to_the_end(scope)
    assert failed_gates(moving, scope, Step.WATCH) == {"writers arrived", "readers arrived"}

    produce(moving.pair.target, topic_name, numbered(100, 110, PARTITIONS))
    arrived = Reader(moving.pair.target, group, topic_name)
    try:
        wait_for(lambda: has_members(moving.pair.target, group))
        moving.finish(scope)
    finally:
        arrived.stop()


def test_records_that_the_source_lost_before_they_were_copied(moving: Migration, topic_name: str) -> None:
    produce(moving.pair.source, topic_name, numbered(100, 110, PARTITIONS))
    delete_records(moving.pair.source, topic_name, before=52)
    assert moving.there.run().exit_code != 0
    scope = moving.define("scope", topic_name)
    moving.run(scope)
    assert failed_gates(moving, scope, Step.PREFLIGHT) == {"partitions copy", "gaps", "retention"}

    mirror(moving, "gaps", "accept", "--topic", topic_name)
    moving.finish(scope)


def test_a_writer_that_stayed_on_the_source(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.RELEASE)
    produce(moving.pair.source, topic_name, numbered(100, 110, PARTITIONS))
    gate = stopped_by(moving, scope, Step.WATCH, "no writer on the source")

    # When it was moved, and an operator takes what the next run of the flow names
    assert "The next run of the flow names the commands" in gate.action
    _, flow = load_flow_as_it_runs(moving.there.path, "A->B")
    (told, *_) = Flow(flow, moving.ledger, moving.there.path).run(sync=False).errors
    assert f"mirror gaps accept --flow 'A->B' --topic {topic_name}" in told.action
    mirror(moving, "gaps", "accept", "--topic", topic_name)

    moving.finish(scope)


def test_a_foreign_record_on_the_target(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.TRANSLATE)
    produce(moving.pair.target, topic_name, numbered(7000, 7001))
    done = moving.run_to_the_end(scope)
    assert (done.state, done.step) == (CutoverState.FAILED, Step.VERIFY)
    assert not moving.ledger.handovers.handed_over()
    advice = moving.gates(scope, Step.VERIFY)["equal"].action
    assert "roll the cutover back, delete the topic on the target, copy it again" in advice

    roll_back(moving.context(scope))
    delete_topic(moving.pair.target, topic_name)
    assert {error.reason for error in moving.there.run().errors} == {"target-deleted"}
    mirror(moving, "gaps", "recopy", "--topic", topic_name)
    assert moving.there.run().errors == ()
    moving.finish(moving.define("scope-2", topic_name))

    assert len(consume(moving.pair.target, topic_name)) == 100


def mirror(moving: Migration, *words: str) -> None:
    """A command about the flow A->B, to which the operator says yes."""
    told = CliRunner().invoke(app, [*words, "--yes", "--config", str(moving.there.path), "--flow", "A->B"])
    assert told.exit_code == 0, told.output
