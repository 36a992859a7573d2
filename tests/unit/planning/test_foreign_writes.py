"""A target log that goes on behind the copy of an idle partition."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.identity.targets import CopiedTo, TargetPartition
from mirror_lib.planning.foreign_writes import foreign_notes, offsets_behind_copies
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts

FLOW = FlowId("A", "B")
IDLE = partition_facts(
    position=100,
    position_topic_id="id-1",
    target_now=TargetPartition("A.orders", "id-2", 97),
    copied_to=CopiedTo("A.orders", "id-2", None, 90),
)


def test_offsets_behind_the_copy_of_an_idle_partition_are_told() -> None:
    behind = offsets_behind_copies([IDLE])
    assert behind == {IDLE.target: (90, 97)}
    (note,) = foreign_notes(FLOW, [IDLE], behind)
    assert "to 1 idle partition: " in note
    assert "A.orders-0 (7 offsets)" in note
    assert note.endswith("`mirror position set --flow 'A->B' --topic orders --partition 0 --to 100`.")


def test_of_several_partitions_the_command_is_that_of_the_first() -> None:
    other = replace(IDLE, source=TopicPartition("orders", 1), target=TopicPartition("A.orders", 1), position=100)

    (note,) = foreign_notes(FLOW, [other, IDLE], offsets_behind_copies([other, IDLE]))

    assert note.endswith("--partition 0 --to 100`, and the same for each other partition.")


def test_nothing_is_said_of_a_target_that_several_sources_share() -> None:
    other = replace(IDLE, source=TopicPartition("payments", 0), interrupted=True)

    assert offsets_behind_copies([IDLE, other]) == {}


def test_nothing_is_said_where_the_flow_may_have_written_it_or_compares_it() -> None:
    for case, fact in (
        ("nothing behind it", replace(IDLE, target_now=TargetPartition("A.orders", "id-2", 90))),
        ("shorter", replace(IDLE, target_now=TargetPartition("A.orders", "id-2", 80))),
        ("deleted", replace(IDLE, target_now=TargetPartition("A.orders", None, None))),
        ("something to copy, which will be compared", replace(IDLE, position=99)),
        ("an interrupted run may have written it", replace(IDLE, interrupted=True)),
        ("never copied", replace(IDLE, position=None, copied_to=None)),
        ("stopped", replace(IDLE, stopped=True)),
        ("MirrorMaker 2's position", replace(IDLE, copied_to=CopiedTo("A.orders", "id-2", None, None))),
        ("undecided", replace(IDLE, copied_to=CopiedTo("A.orders", "id-2", None, 90, undecided=True))),
        ("another topic", replace(IDLE, copied_to=CopiedTo("other", "id-2", None, 90))),
    ):
        assert offsets_behind_copies([fact]) == {}, case
