"""Partitions in which a group has no offset: what is committed there, and what is told. Nothing is ever passed over."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.groups import CommittedOffset, GroupKind, GroupState, ListedGroup
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.cutover import uncommitted as gates
from mirror_lib.features.cutover.scope import ScopeTopic
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.sync.groups.facts import GroupFacts, TargetGroups
from mirror_lib.sync.groups.model import GroupPartition, GroupRow
from mirror_lib.sync.groups.plan import plan_groups
from mirror_lib.sync.groups.remarks import remarks_on
from mirror_lib.sync.groups.uncommitted import LogRange, PartitionSizes, TargetOffset, TopicSize, judge
from mirror_lib.topology.names import TopicPartition
from tests.support.flow_configs import flow_config

PLACE, REMOTE = TopicPartition("orders", 1), TopicPartition("A.orders", 1)
UNCOMMITTED, FORMER = GroupReason.PARTITION_UNCOMMITTED, GroupReason.NO_COMMITTED_OFFSET
#: Of ten source offsets five are records, the others markers.
HALF = OffsetMap.of_runs([OffsetRun(0, 0, 2), OffsetRun(7, 2, 3)])


def judged(
    logs: LogRange,
    committed: int | None = None,
    found: OffsetMap | None = None,
    *,
    known: bool = True,
    from_start: bool = False,
) -> GroupRow | None:
    return judge(GroupRow("g", PLACE, REMOTE), logs, TargetOffset(known, committed), found, from_start=from_start)


def test_the_log_start_is_committed_where_the_group_has_nothing_to_read_and_the_rest_is_told() -> None:
    for logs, committed, begins_at, reason in (
        # Empty on both sides, also after retention; never written; only on the target, whatever is there.
        (LogRange(0, 0, 0, 0), None, 0, None),
        (LogRange(9, 9, 4, 4), None, 4, None),
        (LogRange(0, 0, 0, 3), None, 0, None),
        (LogRange(None, None, 2, 7, on_source=False), None, 2, None),
        # Records: on the source, copied or not, or only on the target; nobody knows.
        (LogRange(0, 7, 0, 7), None, None, UNCOMMITTED),
        (LogRange(0, 7, 0, 0), None, None, UNCOMMITTED),
        (LogRange(9, 9, 0, 9), None, None, UNCOMMITTED),
        (LogRange(None, None, 0, 0), None, None, UNCOMMITTED),
        # The target has no such partition yet.
        (LogRange(0, 0, None, 0), None, None, GroupReason.NO_OFFSET_SYNC_YET),
        # It has an offset there: from before, lost by retention, or behind the end.
        (LogRange(0, 0, 0, 0), 0, None, None),
        (LogRange(0, 7, 0, 7), 0, None, FORMER),
        (LogRange(0, 7, 5, 7), 3, None, UNCOMMITTED),
        (LogRange(None, None, 5, 7, on_source=False), 3, 5, None),
        (LogRange(0, 7, 0, 7), 8, None, GroupReason.BEYOND_TARGET_END),
    ):
        row = judged(logs, committed)
        assert row is not None
        assert (row.target_offset if row.commit else None, row.reason) == (begins_at, reason), (logs, committed)

    told = judged(LogRange(0, 12, 0, 7), None, HALF)
    assert "latest a consumer skips up to 7 records" in told.what
    everything = judged(LogRange(0, 7, 0, 7), from_start=True)
    assert (everything.target_offset, everything.commit) == (0, True)
    # Where offsets are not committed, there is nothing to say about an empty partition.
    assert judged(LogRange(0, 0, 0, 0), known=False) is None


@given(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    st.none() | st.integers(0, 12),
    st.booleans(),
    st.booleans(),
)
def test_no_record_is_before_what_is_committed(
    ends: tuple[int, int, int, int], committed: int | None, on_source: bool, from_start: bool
) -> None:
    start, length, begin, size = ends
    logs = LogRange(start, start + length, begin, begin + size, on_source=on_source)
    row = judged(logs, committed, from_start=from_start)
    assert not row.commit or (row.target_offset == begin and (committed is None or committed < begin))


def test_every_partition_of_a_topic_with_an_offset_has_a_row_and_a_gate_names_those_without() -> None:
    sizes = {"orders": TopicSize(3, 4)}
    committed = {TopicPartition("orders", 0): CommittedOffset(5)}
    numbers = [TopicPartition("orders", number) for number in range(4)]
    facts = GroupFacts(
        {"g": committed},
        OffsetSyncStore(),
        {GroupPartition("g", REMOTE): Checkpoint("g", *REMOTE, 3, 3)},
        TargetGroups({"g": ListedGroup("g", GroupState.EMPTY, GroupKind.CLASSIC)}),
        source_starts=dict.fromkeys(numbers[:3], 0),
        source_ends=dict(zip(numbers[:3], (5, 5, 0), strict=True)),
        target_starts=dict.fromkeys(numbers, 0),
        target_ends=dict(zip(numbers, (5, 5, 0, 1), strict=True)),
        partitions=PartitionSizes(sizes),
    )
    made = plan_groups(flow_topology(flow_config()), facts)

    assert [(row.source.partition, row.reason) for row in made.rows if row.source.partition] == [
        (1, UNCOMMITTED),
        (2, None),
        (3, None),
    ]
    assert {place.partition: each.offset for place, each in made.commits["g"].items()} == {2: 0, 3: 0}
    gate = gates.every_partition_has_an_offset(made.rows, ())
    assert (gate.passed, "g on orders-1" in gate.what) == (False, True)
    assert gates.every_partition_has_an_offset(made.rows, ("g",)).passed
    assert not gates.every_partition_has_an_offset(made.rows, ("other",)).passed
    # Who has joined meanwhile commits for itself.
    active = TargetGroups({"g": ListedGroup("g", GroupState.ACTIVE, GroupKind.CLASSIC)})
    for row in plan_groups(flow_topology(flow_config()), replace(facts, target=active)).rows[1:]:
        assert row.reason is GroupReason.GROUP_ACTIVE_ON_TARGET


def test_keys_that_move_and_metadata_that_may_hold_offsets_are_told() -> None:
    row = GroupRow("g", PLACE, REMOTE, upstream=5, exact=3, metadata="bitset")
    # Kafka Streams: version 2 and a time.
    streams = "AgAAAZkYdVoq"

    (keys, held) = remarks_on([row], {"orders": TopicSize(2, 4), "same": TopicSize(1, 1)})

    assert "orders (2 -> 4)" in keys
    assert "g on orders-1 (5 -> 3)" in held
    assert "mirror.group.metadata=drop" in held
    for other in (
        replace(row, metadata=""),
        replace(row, metadata="\0"),
        replace(row, exact=5),
        replace(row, metadata=streams),
    ):
        assert remarks_on([other], {}) == (), other
    assert "orders (2 -> 4)" in gates.partition_counts([ScopeTopic("orders", "A.orders", 2, 4)]).what
