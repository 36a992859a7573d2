"""The plan for a flow's consumer groups: what is written, what is committed, and a reason for everything else."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.groups import CommittedOffset, GroupKind, GroupState, ListedGroup
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.config.model import Rename
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import (
    AuthorizationError,
    BrokerUnreachableError,
    SourceRecreatedError,
    TargetRecreatedError,
    TopicMissingError,
)
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.offsets.syncs import EmissionState, SyncPoint, flush_syncs
from mirror_lib.sync.groups.facts import GroupFacts, TargetGroups, select_groups
from mirror_lib.sync.groups.model import GroupFinding, GroupPartition, GroupPlan, GroupRow
from mirror_lib.sync.groups.plan import after_applying, plan_groups
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition
from tests.support.flow_configs import flow_config
from tests.support.records.offset_maps import records, run_lists

ORDERS, REMOTE = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
EMPTY = GroupState.EMPTY
DENIED = AuthorizationError("could not read the offsets of group g: denied.")


def a_topology(*, only: tuple[str, ...] = (), **settings: Any) -> FlowTopology:
    return flow_topology(flow_config(**settings), only)


def syncs(points: Iterable[tuple[int, int]], partition: TopicPartition = ORDERS) -> OffsetSyncStore:
    store = OffsetSyncStore()
    for upstream, downstream in points:
        store.add(partition, SyncPoint(upstream, downstream))
    store.mark_loaded()
    return store


def on_target(
    committed: int | None = None, state: GroupState = EMPTY, kind: GroupKind = GroupKind.CLASSIC
) -> TargetGroups:
    offsets = {} if committed is None else {REMOTE: CommittedOffset(committed)}
    return TargetGroups({"g": ListedGroup("g", state, kind)}, {"g": offsets})


NOBODY = TargetGroups()


def plan(
    committed: int | Mapping[TopicPartition, int] = 50,
    *,
    points: Iterable[tuple[int, int]] = ((10, 110), (49, 149)),
    last: tuple[int, int] | None = None,
    target: TargetGroups | None = None,
    topology: FlowTopology | None = None,
    **facts: Any,
) -> GroupPlan:
    offsets = {ORDERS: committed} if isinstance(committed, int) else committed
    checkpoints = {}
    if last is not None:
        checkpoints[GroupPartition("g", REMOTE)] = Checkpoint("g", *REMOTE, *last)
    told = {partition: CommittedOffset(offset, "note") for partition, offset in offsets.items()}
    gathered = GroupFacts({"g": told}, syncs(points), checkpoints, target, **facts)
    return plan_groups(topology or a_topology(), gathered)


def the_row(made: GroupPlan) -> GroupRow:
    (row,) = made.rows
    return row


def test_a_group_gets_its_checkpoint_with_the_text_it_committed() -> None:
    made = plan(50)
    assert list(made.checkpoints) == [Checkpoint("g", "A.orders", 0, 50, 150, "note")]
    assert made.commits == {}
    assert made.counts() == {"in-sync": 1}
    assert made.counts(present=True) == {"pending": 1}


def test_a_group_that_is_not_exactly_in_sync_has_a_reason() -> None:
    for committed, points, reason in (
        (9, ((10, 110),), GroupReason.BEHIND_OLDEST_SYNC),
        (30, ((10, 110), (49, 149)), GroupReason.BETWEEN_SYNCS),
        (51, ((10, 110), (49, 149)), GroupReason.UPSTREAM_BEYOND_COPIED),
        (50, (), GroupReason.NO_OFFSET_SYNC_YET),
    ):
        assert the_row(plan(committed, points=points)).reason is reason
    # A copy that is known to be further than its last record is no lead.
    assert the_row(plan(52, copied_to={ORDERS: 52})).reason is None


def test_a_group_after_the_log_end_of_the_source_does_not_wait_for_the_copy() -> None:
    # Its records may still be copied.
    waits = the_row(plan(51, points=((49, 149),), target=NOBODY, source_ends={ORDERS: 51}))
    assert (waits.reason, waits.target_offset) == (GroupReason.UPSTREAM_BEYOND_COPIED, 150)

    # Where its own policy would reset it on the source is unknown: it gets all records that are written from now on.
    beyond = GroupReason.BEYOND_SOURCE_END
    for end, points, target_offset in ((50, ((49, 149),), 150), (0, (), None)):
        row = the_row(plan(51, points=points, target=NOBODY, source_ends={ORDERS: end}))
        assert (row.reason, row.present_reason, row.target_offset) == (beyond, beyond, target_offset)
        assert row.what == f"its offset is 51, but the log end offset on the source is {end}"


def test_offsets_are_committed_for_groups_without_members_and_never_set_back() -> None:
    for target, commits, reason in (
        # Not there at all, there without the partition, behind, equal, ahead.
        (NOBODY, 150, None),
        (on_target(), 150, None),
        (on_target(149), 150, None),
        (on_target(150), None, None),
        (on_target(151), None, GroupReason.TARGET_AHEAD),
        (on_target(1, GroupState.ACTIVE), None, GroupReason.GROUP_ACTIVE_ON_TARGET),
        (on_target(1, GroupState.DEAD), 150, None),
        # Brokers before 2.6 tell no states; they refuse the commit if the group has members.
        (on_target(1, GroupState.UNKNOWN), 150, None),
        (on_target(1, EMPTY, GroupKind.CONSUMER), 150, None),
        (on_target(1, EMPTY, GroupKind.SHARE), None, GroupReason.OTHER_GROUP_ON_TARGET),
        (TargetGroups(errors={"g": DENIED}), None, GroupReason.UNREADABLE),
    ):
        made = plan(50, target=target)
        expected = {} if commits is None else {"g": {REMOTE: CommittedOffset(commits, "note")}}
        assert made.commits == expected, target
        assert the_row(made).reason is reason, target
        # Whatever is committed, the checkpoint is written.
        assert len(list(made.checkpoints)) == 1, target


def test_an_earlier_checkpoint_is_not_written_again_and_goes_on_counting_unless_the_group_went_back() -> None:
    there = plan(50, last=(50, 150), target=on_target(10))
    assert list(there.checkpoints) == []
    assert there.commits == {"g": {REMOTE: CommittedOffset(150)}}

    went_back = plan(10, last=(50, 150), target=on_target(150))
    assert [(each.upstream_offset, each.downstream_offset) for each in went_back.checkpoints] == [(10, 110)]
    assert (went_back.commits, the_row(went_back).reason) == ({}, GroupReason.TARGET_AHEAD)

    behind_every_sync = plan(3, last=(50, 150), target=NOBODY)
    assert (list(behind_every_sync.checkpoints), behind_every_sync.commits) == ([], {})
    assert the_row(behind_every_sync).reason is GroupReason.BEHIND_OLDEST_SYNC

    # It is from before the syncs were compacted.
    compacted = plan(30, points=((49, 149),), last=(20, 120), target=NOBODY)
    assert compacted.commits["g"][REMOTE].offset == 120
    assert the_row(compacted).reason is GroupReason.BEHIND_OLDEST_SYNC


def test_a_partition_whose_offset_is_gone_is_told_and_nothing_is_committed_for_it() -> None:
    other = TopicPartition("orders", 1)
    made = plan({other: 5}, last=(50, 150), target=NOBODY)
    found = {row.source: row.reason for row in made.rows}
    assert found == {other: GroupReason.NO_OFFSET_SYNC_YET, ORDERS: GroupReason.NO_COMMITTED_OFFSET}
    assert made.changes == 0


def test_topics_that_the_flow_does_not_take_are_told_apart() -> None:
    topology = a_topology(topics=("orders|B.*|pay",), only=("orders|B.*",))
    offsets = {TopicPartition(topic, 0): 5 for topic in ("orders", "other", "pay", "B.back")}
    made = plan(offsets, points=(), topology=topology)
    assert {row.source.topic: row.reason for row in made.rows} == {
        "orders": GroupReason.NO_OFFSET_SYNC_YET,
        "other": GroupReason.TOPIC_NOT_REPLICATED,
        "pay": GroupReason.TOPIC_NOT_REQUESTED,
        # It came from the target: copying it would be a cycle. MM2 takes it, and never finds a sync.
        "B.back": GroupReason.TOPIC_NOT_REPLICATED,
    }


def test_renamed_topics_have_checkpoints_under_their_new_name() -> None:
    topology = a_topology(rename=Rename(explicit={"orders": "sales"}))
    assert [each.topic for each in plan(50, topology=topology).checkpoints] == ["sales"]


def test_one_offset_cannot_stand_for_two_sources_that_share_a_target() -> None:
    names = {"orders": "sales", "returns": "sales"}
    topology = a_topology(rename=Rename(explicit=names, merge=True))
    made = plan({ORDERS: 50, TopicPartition("returns", 0): 5}, topology=topology, target=NOBODY)
    assert {row.reason for row in made.rows} == {GroupReason.MERGED_TARGET}
    assert (made.changes, plan({ORDERS: 50}, topology=topology).changes) == (0, 1)


def test_what_a_cluster_does_not_tell_is_trouble_that_stops_no_other() -> None:
    hidden = TopicPartition("orders", 1)
    finding = GroupFinding("h", GroupReason.UNREADABLE, "denied")
    made = plan(50, unreadable={GroupPartition("g", hidden): DENIED}, findings=(finding,))
    assert made.counts() == {"in-sync": 1, "unreadable": 2}
    assert len(made.problems) == 2
    assert made.changes == 1


def test_what_the_target_refuses_is_told_with_its_reason() -> None:
    made = plan(50, target=NOBODY)
    key = GroupPartition("g", REMOTE)
    error = TopicMissingError("the topic is gone.")

    refused = after_applying(made, {key: error})
    active = after_applying(made, {key: error}, [key])

    assert (the_row(refused).reason, the_row(refused).what) == (GroupReason.REFUSED, "the topic is gone.")
    assert (refused.problems, refused.summary()["commits"]) == (("group g on orders-0: the topic is gone.",), 0)
    assert (the_row(active).reason, active.problems) == (GroupReason.GROUP_ACTIVE_ON_TARGET, ())
    assert after_applying(made, {}) == made


def test_a_group_is_taken_when_the_topic_filter_takes_one_of_its_topics() -> None:
    one, other = TopicPartition("orders", 0), TopicPartition("other", 0)
    offsets = {
        "both": {one: CommittedOffset(1), other: CommittedOffset(2)},
        "other": {other: CommittedOffset(2)},
        "none": {},
        "refused": {one: CommittedOffset(1)},
    }
    chosen = select_groups(a_topology(topics=("orders",)), ["both", "other", "none", "unknown"], offsets)
    assert chosen == {"both": offsets["both"]}


def test_the_summary_counts_and_the_document_has_every_row() -> None:
    made = plan(30, target=NOBODY, notices=("something odd",))
    summary = made.summary()
    assert (summary["groups"], summary["partitions"], summary["checkpoints"], summary["commits"]) == (1, 1, 1, 1)
    assert summary["reasons"] == {"between-syncs": 1}
    (row,) = json.loads(json.dumps(made.to_dict()))["rows"]
    assert row == {
        "group": "g",
        "topic": "orders",
        "partition": 0,
        "target_topic": "A.orders",
        "upstream_offset": 30,
        "checkpoint": 111,
        "exact": None,
        "log_start": None,
        "duplicates": None,
        "skipped": None,
        "target_committed": None,
        "emit": True,
        "commit": True,
        "reason": "between-syncs",
        "what": "",
    }


@given(
    passes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), min_size=1, max_size=12),
    start=st.none() | st.integers(0, 300),
)
def test_on_the_target_a_group_never_goes_back(passes: list[tuple[int, int]], start: int | None) -> None:
    """Groups that wander on the source while copies go on: pass after pass, with the topics as the only memory."""
    committed, last = start, None
    points: list[tuple[int, int]] = []
    for position, copied in passes:
        end = (points[-1][0] if points else 0) + copied
        points.append((end, end + 100))
        made = plan(position, points=points, last=last, target=on_target(committed))
        row = the_row(made)
        for checkpoint in made.checkpoints:
            last = (checkpoint.upstream_offset, checkpoint.downstream_offset)
        if row.commit:
            assert row.checkpoint is not None
            assert committed is None or row.checkpoint.downstream_offset > committed
            assert row.checkpoint.downstream_offset <= max(position, points[0][0]) + 101
            committed = row.checkpoint.downstream_offset
        again = plan(position, points=points, last=last, target=on_target(committed))
        assert again.changes == 0


@given(
    runs=run_lists(min_runs=1, max_runs=6, max_count=30),
    known=st.lists(st.booleans(), min_size=6, max_size=6),
    lag=st.sampled_from([0, 3, 100]),
    passes=st.lists(st.tuples(st.integers(0, 120), st.integers(0, 2), st.sampled_from(["exact", "mm2", "MM2"]))),
)
def test_whoever_writes_a_checkpoint_it_passes_no_record_and_no_other_is_blocked(
    runs: tuple[OffsetRun, ...], known: list[bool], lag: int, passes: list[tuple[int, int, str]]
) -> None:
    """We by both settings, and MirrorMaker 2, which reads the topic when it starts; it has copied some of the runs."""
    every, _ = flush_syncs(EmissionState(), runs, lag)
    pairs = records(runs)
    last: tuple[int, int] | None = None
    copied = 1
    for upstream, more, writer in passes:
        copied = min(copied + more, len(runs))
        end = runs[copied - 1].source_first + runs[copied - 1].count
        points = [(each.upstream_offset, each.downstream_offset) for each in every if each.upstream_offset < end]
        ours = [run for run, is_known in zip(runs[:copied], known, strict=False) if is_known]
        by_rule = syncs(points).translate(ORDERS, upstream) or 0
        if writer == "MM2":
            if by_rule != -1 and (last is None or upstream < last[0] or by_rule > last[1]):
                last = upstream, by_rule
        else:
            maps = {ORDERS: OffsetMap.of_runs(ours)}
            made = plan(upstream, points=points, last=last, maps=maps, exact=writer == "exact")
            for each in made.checkpoints:
                last = each.upstream_offset, each.downstream_offset
        if last is None or (last[0] > upstream and writer != "exact"):
            # MM2 keeps the checkpoint of a group that went back before all syncs.
            continue
        truth = next((there for here, there in pairs if here >= upstream), pairs[-1][1] + 1)
        assert last[0] <= upstream
        assert by_rule <= last[1] <= truth
        if writer == "exact" and any(run.source_first <= upstream < run.source_first + run.count for run in ours):
            assert last[1] == truth


class TestByTheExactMap:
    """Source 10 to 59 stand at 100 to 149, without 40 to 44, which were compacted away."""

    MAP = OffsetMap.of_runs([OffsetRun(10, 100, 30), OffsetRun(45, 130, 15)])
    SYNCS = ((10, 100), (59, 144))

    def planned(self, committed: int, **facts: Any) -> GroupRow:
        told = {"target": NOBODY, "exact": True, "maps": {ORDERS: self.MAP}, "points": self.SYNCS, **facts}
        return the_row(plan(committed, **told))

    def test_the_next_record_on_the_target_is_the_next_one_of_the_source(self) -> None:
        for committed, target_offset in (
            (10, 100),
            (25, 115),
            # In the hole: the next record that there is.
            (42, 130),
            (45, 130),
            (59, 144),
            (60, 145),
        ):
            row = self.planned(committed)
            found = (row.target_offset, row.commit, row.duplicates, row.reason)
            assert found == (target_offset, True, 0, None), committed

        ahead_of_the_copy = self.planned(75)
        assert (ahead_of_the_copy.target_offset, ahead_of_the_copy.reason) == (145, GroupReason.UPSTREAM_BEYOND_COPIED)
        # Markers behind the last record are no lead.
        assert self.planned(62, copied_to={ORDERS: 62}).reason is None

    def test_the_checkpoint_is_the_maps_and_without_a_map_or_by_setting_mm2s(self) -> None:
        for row in (self.planned(25), self.planned(25, target=None), self.planned(25, last=(20, 101))):
            assert (row.checkpoint, row.emit, row.duplicates, row.reason) == ((25, 115), True, 0, None)
        by_rule, no_map = self.planned(25, exact=False), self.planned(25, maps={})

        # One behind the sync at 10: MM2 knows no more.
        assert (by_rule.target_offset, by_rule.duplicates, by_rule.reason) == (101, 14, GroupReason.BETWEEN_SYNCS)
        assert (no_map.exact, no_map.target_offset, no_map.duplicates) == (None, 101, None)
        # What was exact stays, also by MM2's rule.
        for exact in (True, False):
            row = self.planned(26, last=(26, 116), exact=exact)
            assert (row.checkpoint, row.emit, row.reason) == ((26, 116), False, None)

    def test_a_checkpoint_past_the_next_record_is_replaced(self) -> None:
        """MM2 before 3.4.1 added the distance to the newest sync; or the group went back before all syncs."""
        assert self.planned(42, last=(42, 142)).checkpoint == (42, 130)
        assert self.planned(42, last=(42, 142), exact=False).checkpoint == (42, 142)
        before_the_map = self.planned(7, last=(7, 107), points=((5, 90), (10, 100)))
        assert before_the_map.checkpoint == (7, 91)

        went_back = plan(3, points=self.SYNCS, last=(25, 115), maps={ORDERS: self.MAP}, exact=True)
        assert list(went_back.checkpoints) == [Checkpoint("g", *REMOTE, 3, 0, "note")]

    def test_where_mirror_maker_copied_between_or_after_our_runs_its_syncs_are_better(self) -> None:
        between = OffsetMap.of_runs([OffsetRun(10, 100, 10), OffsetRun(50, 140, 10)])
        for found, points in ((between, ((10, 100), (30, 120), (59, 149))), (self.MAP, ((59, 144), (75, 160)))):
            upstream = points[1][0] + 2
            facts: dict[str, Any] = {"maps": {ORDERS: found}, "points": points, "copied_to": {ORDERS: 100}}
            row = self.planned(upstream, **facts)
            assert (row.exact, row.target_offset) == (None, points[1][1] + 1)
            # It wrote it when its syncs were nearer.
            assert not self.planned(upstream, last=(upstream, points[1][1] + 2), **facts).emit

    def test_what_came_from_mirror_maker_is_translated_by_its_syncs(self) -> None:
        """The map begins where MirrorMaker 2 was taken over: records before that are on the target too."""
        row = self.planned(7, points=((5, 90), (10, 100), (59, 144)))

        assert (row.exact, row.target_offset, row.reason) == (None, 91, GroupReason.BETWEEN_SYNCS)

    def test_before_the_first_record_that_was_ever_copied_a_group_goes_on_at_it(self) -> None:
        """Retention had deleted 0 to 9 before the copy began."""
        first = OffsetMap.of_runs([OffsetRun(10, 0, 30)])

        row = self.planned(3, maps={ORDERS: first}, points=((10, 0), (39, 29)), source_starts={ORDERS: 10})

        assert (row.target_offset, row.commit, row.duplicates, row.reason) == (0, True, 0, None)

    def test_in_a_hole_on_both_sides_nothing_that_may_be_a_record_is_passed_over(self) -> None:
        """A run that died before its round reached the ledger may have written what neither map nor syncs know."""
        gap = OffsetMap.of_runs([OffsetRun(10, 100, 30), OffsetRun(45, 135, 15)])

        row = self.planned(42, maps={ORDERS: gap})

        assert (row.target_offset, row.commit) == (130, True)

    def test_a_group_is_never_set_back(self) -> None:
        assert self.planned(25, target=on_target(120)).reason is GroupReason.TARGET_AHEAD
        assert self.planned(25, target=on_target(115)).commit is False
        assert self.planned(25, target=on_target(114)).commit is True


def test_every_reason_is_explained_where_people_look_it_up() -> None:
    page = (Path(__file__).parents[3] / "docs" / "consumer-groups.md").read_text()
    explained = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}

    assert explained == {reason.value for reason in GroupReason}


def test_nothing_is_done_where_the_target_is_not_what_was_copied_to() -> None:
    for error, reason in (
        (TargetRecreatedError("A.orders was created again."), GroupReason.TARGET_CHANGED),
        (SourceRecreatedError("orders was created again."), GroupReason.SOURCE_CHANGED),
        (BrokerUnreachableError("no answer."), GroupReason.UNREADABLE),
    ):
        made = plan(50, target=NOBODY, target_errors={ORDERS: error})
        row = the_row(made)
        assert (row.reason, row.emit, row.commit, row.target_offset) == (reason, False, False, None)
        assert error.what in row.what
        assert made.problems


def test_nothing_is_committed_behind_the_end_of_the_targets_log() -> None:
    """The newest sync maps 49 to 149: a group at 50 continues at 150."""
    for ends, reason in (({ORDERS: 149}, GroupReason.BEYOND_TARGET_END), ({ORDERS: 150}, None), ({}, None)):
        made = plan(50, target=NOBODY, target_ends=ends)
        row = the_row(made)
        assert (row.reason, row.commit, row.emit) == (reason, reason is None, reason is None), ends
        assert bool(made.problems) == (reason is not None), ends

    # By the exact map neither.
    maps = {ORDERS: OffsetMap.of_runs((OffsetRun(0, 100, 100),))}
    row = the_row(plan(80, points=[(0, 100)], target=NOBODY, maps=maps, exact=True, target_ends={ORDERS: 170}))
    assert (row.reason, row.commit, row.target_offset) == (GroupReason.BEYOND_TARGET_END, False, None)


class TestAGroupAtTheEndOfATargetWithoutAMap:
    """The target was lost, and its copy continues behind what was on it (`mirror gaps accept`)."""

    def row(self, upstream: int, *, copied_to: int = 20, exact: bool = True, **facts: Any) -> GroupRow:
        given = {"target_starts": {ORDERS: 0}, "target_ends": {ORDERS: 0}, "source_ends": {ORDERS: 20}, **facts}
        return the_row(
            plan(upstream, points=[(0, 0)], target=NOBODY, exact=exact, copied_to={ORDERS: copied_to}, **given)
        )

    def test_what_it_has_not_read_and_the_source_still_holds_is_skipped(self) -> None:
        for exact in (True, False):
            row = self.row(0, exact=exact)
            assert (row.target_offset, row.skipped, row.reason) == (0, 20, GroupReason.SKIPS_RECORDS), exact

        assert self.row(0, source_starts={ORDERS: 15}).skipped == 5
        assert self.row(0, copied_to=0).reason is None
        # Where the target holds more than the group has read, nothing tells.
        assert self.row(0, target_ends={ORDERS: 7}).skipped is None

    def test_what_the_targets_retention_has_deleted_may_be_skipped(self) -> None:
        """Seed 2037 of the model: `in sync` after the map was rebuilt from a target that held a marker only."""
        for start, end, skipped in ((15, 22, 15), (21, 22, 20)):
            row = self.row(0, target_starts={ORDERS: start}, target_ends={ORDERS: end})
            assert (row.target_offset, row.skipped, row.reason) == (start, skipped, GroupReason.SKIPS_RECORDS), start

    def test_so_it_is_when_the_copy_has_continued_there_behind_the_marker_of_a_take_over(self) -> None:
        """The sync with which the decision has voided the earlier ones says that nothing stands in front of the map."""
        made = plan(
            0,
            points=[(-1, -1), (20, 1)],
            target=NOBODY,
            maps={ORDERS: OffsetMap.of_runs((OffsetRun(20, 1, 5),))},
            exact=True,
            copied_to={ORDERS: 25},
            target_ends={ORDERS: 6},
        )

        row = the_row(made)
        assert (row.target_offset, row.skipped, row.reason) == (1, 20, GroupReason.SKIPS_RECORDS)

    def test_so_it_is_when_nothing_but_markers_stands_behind_the_decision(self) -> None:
        """A position set to the end, in an empty topic: fences write markers, and there is no map."""
        made = plan(0, points=[(-1, -1)], target=NOBODY, exact=True, copied_to={ORDERS: 22}, target_ends={ORDERS: 2})

        row = the_row(made)
        assert (row.target_offset, row.skipped, row.reason) == (0, 22, GroupReason.SKIPS_RECORDS)

    def test_what_mirror_maker_copied_in_front_of_a_map_is_not_skipped(self) -> None:
        maps = {ORDERS: OffsetMap.of_runs((OffsetRun(20, 20, 5),))}

        assert the_row(plan(0, points=[(0, 0), (20, 20)], target=NOBODY, maps=maps, exact=True)).skipped == 0


class TestRecordsThatAGroupWouldSkip:
    """Each group continues where the exact map says; the next record that it reads there is not its next one."""

    def row(self, upstream: int, *runs: OffsetRun, **facts: Any) -> GroupRow:
        maps = {ORDERS: OffsetMap.of_runs(runs)}
        return the_row(plan(upstream, points=[(0, 0)], target=NOBODY, maps=maps, exact=True, **facts))

    def test_what_a_killed_run_has_written_and_the_target_has_deleted_is_counted(self) -> None:
        """Seed 100024 of the model: `in sync`, and the next run stopped with `unclean-start`."""
        ends = {"target_starts": {ORDERS: 90}, "target_ends": {ORDERS: 90}, "source_ends": {ORDERS: 100}}

        row = self.row(50, OffsetRun(0, 0, 50), **ends)
        marker = self.row(50, OffsetRun(0, 0, 50), **ends, written_to={ORDERS: 90})
        behind = self.row(20, OffsetRun(0, 0, 50), **ends)
        nothing_new = self.row(50, OffsetRun(0, 0, 50), **{**ends, "source_ends": {ORDERS: 50}})

        assert (row.reason, row.skipped) == (GroupReason.SKIPS_RECORDS, 40)
        assert (marker.reason, marker.skipped) == (None, 0)
        assert (behind.reason, behind.skipped) == (GroupReason.SKIPS_RECORDS, 70)
        assert (nothing_new.reason, nothing_new.skipped) == (None, 0)

    def test_a_group_before_the_log_start_of_the_target_continues_there(self) -> None:
        """Seed 5018 of the model: an offset out of range is reset by the consumer's policy, which may be `latest`."""
        ends = {"target_starts": {ORDERS: 30}, "target_ends": {ORDERS: 50}, "source_starts": {ORDERS: 50}}

        row = self.row(20, OffsetRun(0, 0, 50), **ends)
        counted = self.row(20, OffsetRun(0, 0, 50), **{**ends, "source_starts": {ORDERS: 0}})
        later = self.row(40, OffsetRun(0, 0, 50), **ends)

        assert (row.target_offset, row.commit, row.skipped, row.reason) == (30, True, 0, None)
        # Its checkpoint is the translation, as that of MirrorMaker.
        assert (row.checkpoint and row.checkpoint.downstream_offset, row.exact) == (20, 20)
        assert (counted.target_offset, counted.skipped, counted.reason) == (30, 10, GroupReason.SKIPS_RECORDS)
        assert later.target_offset == 40

    def test_such_records_are_counted_too_if_later_ones_were_copied(self) -> None:
        runs = OffsetRun(0, 0, 50), OffsetRun(62, 62, 30)

        row = self.row(50, *runs, target_starts={ORDERS: 62})
        at_the_end = self.row(62, *runs, target_starts={ORDERS: 62})
        compacted = self.row(50, OffsetRun(0, 0, 50), OffsetRun(62, 50, 30), target_starts={ORDERS: 50})

        assert (row.reason, row.skipped) == (GroupReason.SKIPS_RECORDS, 12)
        assert (at_the_end.reason, at_the_end.skipped) == (None, 0)
        assert (compacted.reason, compacted.skipped) == (None, 0)

    @given(
        upstream=st.integers(0, 120),
        copied=st.sets(st.integers(0, 99)),
        skipped=st.tuples(st.integers(0, 99), st.integers(0, 99)),
        deleted=st.integers(0, 100),
        held=st.integers(0, 100),
    )
    def test_each_record_that_the_source_still_holds_counts_once(
        self, upstream: int, copied: set[int], skipped: tuple[int, int], deleted: int, held: int
    ) -> None:
        """Against a model of single records: all offsets are records, and what is not copied was left out.

        Those before the copy, those that somebody left out, and those that the target alone has deleted.
        """
        offsets = sorted(copied)
        if not offsets:
            return
        first, following = min(skipped), max(skipped)
        runs = [OffsetRun(offset, place, 1) for place, offset in enumerate(offsets)]
        starts = {"target_starts": {ORDERS: deleted}, "source_starts": {ORDERS: held}}

        row = self.row(upstream, *runs, skipped={ORDERS: [(first, following)]}, **starts)

        unread_before = set(range(upstream, offsets[0]))
        unread_left_out = set(range(max(first, upstream, offsets[0]), following)) - copied
        gone = {offset for place, offset in enumerate(offsets) if place < deleted and offset >= upstream}
        skipped = {offset for offset in unread_before | unread_left_out | gone if offset >= held}
        assert row.skipped == len(skipped)
        beyond = row.reason is GroupReason.UPSTREAM_BEYOND_COPIED
        assert beyond or (row.reason is GroupReason.SKIPS_RECORDS) == bool(skipped)


class TestAPlanForOneGroup:
    def test_counts_only_that_group(self) -> None:
        made = plan(30, target=NOBODY)
        other = replace(made.rows[0], group="other", reason=GroupReason.REFUSED, what="denied")
        both = replace(made, rows=(*made.rows, other))

        only = both.of_group("g", taken=True)

        assert only.rows == made.rows
        assert (both.problems != (), only.problems) == (True, ())

    def test_keeps_what_is_known_of_a_group_that_is_left_out(self) -> None:
        skipped = GroupFinding("g2", GroupReason.GROUP_KIND_NOT_SUPPORTED, "it is a share group")

        made = plan(30, findings=(skipped,)).of_group("g2", taken=True)

        assert (made.rows, made.findings) == ((), (skipped,))


def test_a_copied_topic_without_syncs_whose_records_are_routed_has_a_lasting_reason() -> None:
    routed = plan(points=(), copied_to={ORDERS: 60}, routed={"orders"})
    not_yet = plan(points=(), routed={"orders"})
    with_syncs = plan(copied_to={ORDERS: 60}, routed={"orders"})

    assert [row.reason for row in routed.rows] == [GroupReason.ROUTED_BY_TRANSFORM]
    assert [row.reason for row in not_yet.rows] == [GroupReason.NO_OFFSET_SYNC_YET]
    assert GroupReason.ROUTED_BY_TRANSFORM not in [row.reason for row in with_syncs.rows]
