"""Copies with the same offsets after decisions of operators, and there and back in a cutover."""

from __future__ import annotations

import pytest

from mirror_lib.errors import OffsetsDifferError
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.console import Console
from tests.support.cutovers import migration
from tests.support.kafka import Record, consume, delete_records, delete_topic, produce, records, transaction, watermarks
from tests.support.mirrored_topic import MirroredTopic

SAME = {"A->B.mirror.offsets": "same", "mirror.run.lease.seconds": "3"}


def visible(mirrored: MirroredTopic, *, target: bool) -> list[Record]:
    """The committed records of a topic that has the same name on both sides, with their offsets."""
    cluster = mirrored.target if target else mirrored.source
    return consume(cluster, mirrored.name, isolation="read_committed")


def test_a_topic_moves_and_comes_home_at_the_same_numbers(mirrored: MirroredTopic) -> None:
    """Records, groups and holes: what is written on either side is on the other one at its offset."""
    group, name = f"g-{mirrored.name}", mirrored.name
    mirrored.create([*records(20), *records(20, partition=1)], partitions=2)
    transaction(mirrored.source, name, [b"a", b"b"], commit=True)
    transaction(mirrored.source, name, [b"c"], commit=False, partition=1)
    moving = migration(
        mirrored.folder,
        mirrored.pair,
        name,
        {
            "mirror.offsets": "same",
            "A.consumer.isolation.level": "read_committed",
            "B.consumer.isolation.level": "read_committed",
        },
    )
    assert moving.there.run().errors == ()
    for partition in range(2):
        commit_offset(mirrored.source, group, name, 7, partition=partition)

    moving.finish(moving.define("there", name))
    assert visible(mirrored, target=True) == visible(mirrored, target=False)
    assert committed_offsets(mirrored.target, group)[name, 0] == 7
    transaction(mirrored.target, name, [b"d", b"e"], commit=True)
    transaction(mirrored.target, name, [b"f"], commit=False)
    produce(mirrored.target, name, records(5, start=100))
    assert moving.back.run().errors == ()
    moving.finish(moving.fail_back("there"))
    assert visible(mirrored, target=False) == visible(mirrored, target=True)

    produce(mirrored.source, name, records(5, start=200))
    assert moving.there.run().errors == ()

    assert visible(mirrored, target=True) == visible(mirrored, target=False)
    assert len(visible(mirrored, target=True)) == 54
    assert watermarks(mirrored.source, name) == watermarks(mirrored.target, name)
    moving.ledger.close()


def test_a_topic_whose_target_was_deleted_is_copied_again_from_where_the_source_begins_now(
    mirrored: MirroredTopic,
) -> None:
    flow = mirrored.flow(SAME)
    mirrored.create(records(30))
    assert flow.run().errors == ()
    delete_records(mirrored.source, mirrored.name, before=12)
    delete_topic(mirrored.target, mirrored.remote)
    assert flow.run().errors != ()
    assert Console(flow.path).say("gaps", "recopy", "--all", "--yes").exit_code == 0

    assert flow.run().errors == ()

    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
    assert watermarks(mirrored.target, mirrored.remote) == (12, 30)


def test_a_position_that_goes_back_is_refused_until_it_is_where_the_target_ends(mirrored: MirroredTopic) -> None:
    flow = mirrored.flow(SAME)
    mirrored.create(records(10))
    assert flow.run().errors == ()
    mirrored.produce(records(5, start=10))
    console = Console(flow.path)
    place = "--topic", mirrored.name, "--partition", "0", "--yes", "--to"
    assert console.say("position", "set", *place, "4").exit_code == 0

    (error,) = flow.run().errors
    assert isinstance(error, OffsetsDifferError)
    assert "continues at source offset 4" in error.what

    assert console.say("position", "set", *place, "10").exit_code == 0
    assert flow.run().errors == ()
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)


def own_positions(mirrored: MirroredTopic) -> dict[str, str]:
    """The settings of a flow whose positions can be lost without those of other flows."""
    return {**SAME, "B.offset.storage.topic": f"positions-{mirrored.name}"}


@pytest.mark.parametrize("in_ledger", [True, False], ids=["the ledger has it", "nothing is known"])
def test_a_copy_whose_position_is_lost_goes_on_where_the_target_ends(mirrored: MirroredTopic, in_ledger: bool) -> None:
    flow = mirrored.flow(own_positions(mirrored))
    mirrored.create(records(10))
    assert flow.run().errors == ()
    mirrored.produce(records(5, start=10))
    delete_topic(mirrored.target, flow.config.offset_storage_topic)
    if not in_ledger:
        flow = mirrored.flow(
            {**own_positions(mirrored), "mirror.ledger.url": f"sqlite:///{mirrored.folder}/another.sqlite3"}
        )
    (error,) = flow.run().errors
    assert error.reason == ("position-lost" if in_ledger else "target-not-empty")

    place = "--topic", mirrored.name, "--partition", "0"
    said = Console(flow.path).say("position", "set", *place, "--to", "10", "--yes")

    assert said.exit_code == 0, said.text
    assert flow.run().errors == ()
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
    assert flow.run().records == 0


def test_groups_verification_and_map_know_of_the_holes(mirrored: MirroredTopic) -> None:
    groups = {"checkpoints.topic.replication.factor": "1", "sync.group.offsets.enabled": "true"}
    flow, group = mirrored.flow({**SAME, **groups}), f"g-{mirrored.name}"
    mirrored.create(records(10))
    for number in range(4):
        transaction(mirrored.source, mirrored.name, [b"%d" % number], commit=True)
        assert flow.run().errors == ()
    mirrored.produce(records(3, start=100))
    assert flow.run().errors == ()

    console = Console(flow.path)
    # Offset 11 is the marker of the first transaction.
    commit_offset(mirrored.source, group, mirrored.name, 11)
    said = console.say("groups", "apply")
    assert said.exit_code == 0, said.document
    assert committed_offsets(mirrored.target, group)[mirrored.remote, 0] == 11
    for mode in ("full", "sample", "recent"):
        said = console.say("verify", "--mode", mode, "--processes", "1")
        assert said.exit_code == 0, said.text
    assert console.say("map", "rebuild", "--apply").exit_code == 0
    mirrored.produce(records(3, start=200))
    assert flow.run().errors == ()
    said = console.say("verify", "--mode", "full", "--processes", "1")
    assert said.exit_code == 0, said.text


@pytest.mark.parametrize("begin", [0, 5])
@pytest.mark.parametrize("now", ["same", "own"])
def test_a_flow_is_switched_over_by_copying_to_new_names(mirrored: MirroredTopic, now: str, begin: int) -> None:
    """As docs/same-offsets.md says it, in both directions."""
    before = {"same": "own", "own": "same"}[now]
    mirrored.create(records(10))
    transaction(mirrored.source, mirrored.name, [b"1"], commit=True)
    mirrored.produce(records(5, start=10))
    assert mirrored.flow({"A->B.mirror.offsets": before, "mirror.run.lease.seconds": "3"}).run().errors == ()
    delete_records(mirrored.source, mirrored.name, before=begin)
    anew = f"{mirrored.name}.anew"
    flow = mirrored.flow({**SAME, "A->B.mirror.offsets": now, "mirror.topics.rename": f"{mirrored.name}:{anew}"})
    (error,) = flow.run().errors
    assert error.reason == "target-renamed"
    assert Console(flow.path).say("gaps", "recopy", "--all", "--yes").exit_code == 0

    assert flow.run().errors == ()
    mirrored.produce(records(5, start=20))
    assert flow.run().errors == ()

    there, here = consume(mirrored.target, anew), consume(mirrored.source, mirrored.name)
    assert [each.value for each in there] == [each.value for each in here]
    assert ([each.offset for each in there] == [each.offset for each in here]) is (now == "same")
