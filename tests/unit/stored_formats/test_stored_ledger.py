"""Today's code reads the ledger of every version: what was put in comes out, on SQLite and on PostgreSQL.

Expected values are input, or what an independent client read from the logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from mirror_lib.config.loader import load
from mirror_lib.copy.run_lock import LockHolder
from mirror_lib.features.backfill.define import stored_backfill
from mirror_lib.features.cutover.machine import progress
from mirror_lib.features.cutover.model import StepState
from mirror_lib.features.cutover.opening import open_cutover
from mirror_lib.features.cutover.records import attempt_of
from mirror_lib.features.cutover.states.cutover import Event, choices
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.features.transforms.tables import RoutedRanges
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.former_names import with_present_names
from mirror_lib.ledger.rows import GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.offset_map import Landing, OffsetMap
from mirror_lib.topology.names import TopicPartition
from tests.support.ledger.rows import segment

# conftest.py is no module that can be imported here.
Stored = Any
Fact = dict[str, Any]


def values(row: object, fact: Fact, *unlike: str) -> dict[str, Any]:
    """What a row has for the members of a fact."""
    return {name: getattr(row, name) for name in fact if name not in unlike}


def without(fact: Fact, *unlike: str) -> dict[str, Any]:
    return {name: value for name, value in fact.items() if name not in unlike}


def one(rows: Any, fact: Fact, *keys: str) -> Any:
    """The only row that has these members of a fact."""
    found = [row for row in rows if all(getattr(row, key) == fact[key] for key in keys)]
    assert len(found) == 1, (fact, found)
    return found[0]


def test_every_table_was_filled(stored: Stored) -> None:
    assert [name for name, rows in stored.rows_before.items() if not rows] == []


def test_runs_have_their_ends_and_counts(stored: Stored) -> None:
    for fact in stored.facts("runs"):
        run = stored.ledger.run(fact["id"])
        assert values(run, fact, "reason") == without(fact, "reason")
        assert (run.finished_at is None) == (fact["state"] == "running")
        if fact["reason"] is not None:
            assert run.error["reason"] == fact["reason"]
    assert {fact["state"] for fact in stored.facts("runs")} == {"succeeded", "failed", "partial", "running"}


def test_rounds_and_partitions_add_up_to_their_runs(stored: Stored) -> None:
    for fact in stored.facts("runs"):
        assert sum(row.records for row in stored.ledger.rounds(run_id=fact["id"])) == fact["records"]
        assert sum(row.records for row in stored.ledger.partition_runs(fact["id"])) == fact["records"]


#: How the rows of a kind of facts are read, and the members that tell which of them is meant.
READ: dict[str, tuple[Callable[[Ledger, Fact], Any], tuple[str, ...]]] = {
    "runs_of_flow": (lambda ledger, fact: ledger.runs(fact["flow"]), ()),
    "unknown_positions": (lambda ledger, fact: ledger.positions(fact["flow"]), ("topic", "partition")),
    "rate_claims": (lambda ledger, _: ledger.rate_claims(), ("flow", "side")),
    "acls": (lambda ledger, fact: ledger.acls(fact["flow"]), ("principal",)),
    "handed_over": (lambda ledger, fact: ledger.handovers.handed_over(fact["flow"]), ("topic",)),
    "cuts": (lambda ledger, fact: ledger.handovers.cuts(fact["name"]), ("topic", "partition")),
    "verifications": (lambda ledger, fact: Verifications(ledger).of_id(fact["id"]), ("topic", "partition")),
    "observed_partitions": (
        lambda ledger, fact: ledger.observations.partitions(fact["flow"]),
        ("topic", "partition"),
    ),
    "groups": (lambda ledger, fact: ledger.observations.groups(fact["flow"]), ("group", "topic", "partition")),
    "step_outcomes": (lambda ledger, _: ledger.observations.steps(), ("flow", "step")),
    "audits": (lambda ledger, _: ledger.audits.newest(), ("action", "subject")),
}


def test_rows_have_the_values_that_were_put_in(stored: Stored) -> None:
    for kind, (read, keys) in READ.items():
        for fact in stored.facts(kind):
            row = one(read(stored.ledger, fact), fact, *keys)
            # Cuts name their cutover otherwise.
            assert values(row, fact, "name") == without(fact, "name"), kind


def test_positions_are_the_ends_of_both_logs(stored: Stored) -> None:
    for fact in stored.facts("positions"):
        row = one(stored.ledger.positions(fact["flow"]), fact, "topic", "partition")
        assert (row.offset + 1, row.target_offset, row.state) == (fact["next_offset"], fact["target_offset"], "closed")
        assert row.run_id
        assert row.topic_id
    for fact in stored.facts("unknown_positions"):
        row = one(stored.ledger.positions(fact["flow"]), fact, "topic", "partition")
        assert (row.target_offset, row.producer_id, row.epoch, row.run_id, row.topic_id) == (None,) * 5


def test_every_record_is_where_the_offset_map_says(stored: Stored) -> None:
    holes = 0
    for fact in stored.facts("offset_map"):
        found = OffsetMap.of_segments(stored.ledger.segments(fact["flow"], fact["topic"], fact["partition"]))
        for source, target in fact["pairs"]:
            assert found.to_target(source) == (target, Landing.EXACT), fact
            assert found.to_source(target) == (source, Landing.EXACT), fact
        for hole in fact["holes"]:
            following = min(target for source, target in fact["pairs"] if source > hole)
            assert found.to_target(hole) == (following, Landing.HOLE), fact
        holes += len(fact["holes"])
    assert holes > 10


def test_records_that_transforms_sent_elsewhere_are_counted(stored: Stored) -> None:
    for fact in stored.facts("routed"):
        rows = RoutedRanges(stored.ledger).of_flow(fact["flow"])
        found = [
            row
            for row in rows
            if (row.target_topic, row.target_partition) == (fact["target_topic"], fact["target_partition"])
        ]
        assert sum(row.records for row in found) == fact["records"]
        assert {row.own for row in found} == {fact["target_topic"] == "shop.clicks"}


def test_gaps_have_their_ranges_and_decisions(stored: Stored) -> None:
    for fact in stored.facts("gaps"):
        gaps = stored.ledger.gaps(fact["flow"], None)
        keys = [name for name in ("topic", "partition", "cause", "first_offset") if name in fact]
        assert values(one(gaps, fact, *keys), fact) == fact
    assert {fact["state"] for fact in stored.facts("gaps")} == {"open", "accepted", "recopied", "stopped"}
    assert stored.ledger.stopped_partitions("east->west") == {TopicPartition("archive", 0)}


def test_locks_are_held_by_those_who_had_them(stored: Stored) -> None:
    for fact in stored.facts("locks"):
        row = stored.ledger.lock_holder(fact["flow"])
        assert values(row, fact, "host") == without(fact, "host")
        holder = LockHolder.parse(row.holder)
        assert holder.host == fact["host"]
    assert stored.ledger.lock_holder("east->west") is None


def test_shares_of_limits_count_while_their_runs_hold_the_locks(stored: Stored) -> None:
    assert len(stored.ledger.rate_claims()) == len(stored.facts("rate_claims"))


def test_backfills_are_defined_as_they_were_asked_for(stored: Stored, tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text("clusters = east, west\neast.bootstrap.servers = e:1\nwest.bootstrap.servers = w:1\n")
    flow = load(file).flow("east->west")
    for fact in stored.facts("backfills"):
        found = stored_backfill(flow, stored.ledger, fact["name"])
        (range_,) = found.ranges
        assert (range_.source, range_.first, range_.following, found.into_live) == (
            TopicPartition(fact["topic"], 0),
            fact["first"],
            fact["next"],
            fact["into_live"],
        )
        assert found.connector == f"MirrorBackfill-{fact['name']}"


def test_cutovers_are_at_the_steps_that_they_had_come_to(stored: Stored) -> None:
    for fact in stored.facts("cutovers"):
        done = progress(stored.ledger, open_cutover(stored.ledger, fact["name"]))
        assert (done.state.value, done.step.value) == (fact["state"], fact["step"]), fact
        # Its process has ended: whatever it asked then, nobody would take an answer now, and it can be triggered.
        assert done.present.carrier is None
        assert done.present.question is None
        assert done.present.state.has_ended or Event.TRIGGER in choices(done.present.state)
    states = {fact["state"] for fact in stored.facts("cutovers")}
    assert states == {"running", "waiting", "failed", "finished", "rolled-back"}


def test_cutovers_are_defined_as_they_were_asked_for(stored: Stored) -> None:
    for fact in stored.facts("cutover_definitions"):
        found = open_cutover(stored.ledger, fact["name"])
        assert (found.flow, found.topics, found.groups) == (fact["flow"], (fact["topic"],), (fact["group"],))
        assert (found.style.value, found.fence.value, found.quiet_seconds) == (
            fact["style"],
            fact["fence"],
            with_present_names(fact)["quiet_seconds"],
        )
    for fact in stored.facts("failbacks"):
        found = open_cutover(stored.ledger, fact["name"])
        assert (found.flow, found.name) == (fact["flow"], f"{fact['of']}-back")
        assert fact["topic"] in found.topics[0]


def test_attempts_that_failed_tell_why(stored: Stored) -> None:
    for fact in stored.facts("failed_steps"):
        attempts = [attempt_of(row) for row in Cutovers(stored.ledger).steps(fact["name"])]
        (failed,) = (each for each in attempts if (each.step, each.number) == (fact["step"], fact["attempt"]))
        assert failed.state is StepState.FAILED
        assert failed.error is not None
        assert failed.error["what"] == fact["what"]


def test_topics_that_were_handed_over_are_with_their_flows(stored: Stored) -> None:
    for fact in stored.facts("taken_back"):
        assert fact["topic"] not in {row.topic for row in stored.ledger.handovers.handed_over(fact["flow"])}
    for fact in stored.facts("fences"):
        (fence,) = (each for each in stored.ledger.handovers.fences(fact["flow"]) if each["name"] == fact["topic"])
        assert fence["principal"] == fact["principal"]


def test_verifications_have_their_verdicts(stored: Stored) -> None:
    for fact in stored.facts("verifications"):
        row = one(Verifications(stored.ledger).of_id(fact["id"]), fact, "topic", "partition")
        assert len(row.differences or ()) == row.difference_count
        assert (row.source_first is None) == (row.verdict == "unverifiable")


def test_observations_say_what_is_not_copied_and_why(stored: Stored) -> None:
    observations = stored.ledger.observations
    for fact in stored.facts("observed_flows"):
        row = stored.ledger.observations.newest(fact["flow"])
        stalled = {each.topic for each in observations.partitions(fact["flow"]) if each.reason == "retention-gap"}
        assert stalled == {*fact["stalled_topics"]}
        assert row.open_gaps == fact["open_gaps"]
    for fact in stored.facts("unknown_observations"):
        flow = stored.ledger.observations.newest(fact["flow"])
        assert (flow.bytes_behind, flow.seconds_behind, flow.groups, flow.headroom_seconds) == (None,) * 4
        row = one(observations.partitions(fact["flow"]), fact, "topic", "partition")
        assert (row.log_end, row.position, row.records_behind) == (None, None, 0)
        group = one(observations.groups(fact["flow"]), fact, "group", "topic", "partition")
        assert (group.upstream, group.duplicates, group.reason) == (None, None, "unreadable")


def test_groups_have_the_offsets_that_they_committed(stored: Stored) -> None:
    for fact in stored.facts("groups"):
        row = one(stored.ledger.observations.groups(fact["flow"]), fact, "group", "topic", "partition")
        assert row.target_committed == row.target_offset


def test_heartbeats_have_their_verdicts(stored: Stored) -> None:
    for fact in stored.facts("heartbeats"):
        rows = stored.ledger.observations.heartbeats(fact["flow"])
        assert fact["verdict"] in {row.verdict for row in rows}
        emitted = {row.emitted_at is not None for row in rows if row.verdict == fact["verdict"]}
        assert emitted == {fact.get("emitted", True)}


def test_steps_were_done_when_they_were(stored: Stored) -> None:
    steps = stored.ledger.observations.steps()
    for fact in stored.facts("skipped_steps"):
        assert fact["names"] in one(steps, fact, "flow", "step").skipped
    last = datetime.fromisoformat(stored.facts("written")[1]["last"])
    for fact in stored.facts("sync_times"):
        done = stored.ledger.last_sync(fact["flow"], fact["step"])
        assert done is not None
        assert datetime.fromisoformat(fact["not_before"]) <= done <= last


def test_acts_are_kept_with_who_did_them(stored: Stored) -> None:
    created = {each.subject for each in stored.ledger.audits.newest() if each.action == "cutover-create"}
    assert created == {fact["name"] for fact in stored.facts("cutovers")}


def test_every_time_is_from_when_it_was_written(stored: Stored) -> None:
    first, last = (datetime.fromisoformat(value) for fact in stored.facts("written") for value in fact.values())
    runs = [stored.ledger.run(fact["id"]) for fact in stored.facts("runs")]
    assert all(first <= run.started_at <= last for run in runs)
    assert all(run.finished_at is None or run.started_at <= run.finished_at <= last for run in runs)


def test_a_run_of_today_continues_what_was_stored(continued: Stored) -> None:
    ledger, flow, topic = continued.ledger, "east->west", "orders"
    position = next(row for row in ledger.positions(flow) if (row.topic, row.partition) == (topic, 0))
    before = ledger.segments(flow, topic, 0)
    start, end = position.offset + 1, position.target_offset
    added = segment(start, end, 10, flow=flow, run_id="next")
    held = {"flow": flow, "run_id": "next", "holder": "process 1 on mirror-2, lease 1"}

    ledger.acquire_lock(**held, lease_seconds=30)
    ledger.start_run(run_id="next", flow=flow, trigger="cli")
    ledger.append_segments([added])
    ledger.save_positions([replace(position, offset=start + 9, target_offset=end + 10, run_id="next")])
    ledger.finish_run("next", state="succeeded", records=10)
    ledger.release_lock(**held)

    after = ledger.segments(flow, topic, 0)
    assert OffsetMap.of_segments(after).to_target(start + 3) == (end + 3, Landing.EXACT)
    assert sum(row.records for row in after) == sum(row.records for row in before) + 10
    # The new part continues the newest row, which grows.
    assert len(after) == len(before)
    assert ledger.runs(flow, 1)[0].id == "next"
    assert ledger.lock_holder(flow) is None


def test_an_open_gap_is_decided_today_and_a_lock_stays_with_its_holder(continued: Stored) -> None:
    ledger = continued.ledger
    (gap,) = ledger.open_gaps("east->west")
    assert ledger.record_gap(replace(gap, id="found-again")).id == gap.id

    decided = ledger.decide_gap(gap.id, GapState.ACCEPTED, by="ann", note="known")

    assert (decided.state, decided.decided_by, decided.note) == ("accepted", "ann", "known")
    (fact,) = (each for each in continued.facts("locks") if each["flow"] == "busy->store")
    held = ledger.acquire_lock(flow="busy->store", run_id="next", holder="another", lease_seconds=30)
    assert held.run_id == fact["run_id"]
