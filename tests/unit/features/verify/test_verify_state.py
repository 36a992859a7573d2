"""The comparison by state, against a model of compacted logs that are cleaned at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.verify.findings import Difference, DifferenceKind, Verdict
from mirror_lib.features.verify.model import VerifyFacts, VerifyMode
from mirror_lib.features.verify.state import digests
from mirror_lib.features.verify.state.compare import KeyState, StateFindings, StateRules, compare_states
from mirror_lib.features.verify.state.digests import BUCKETS, Digester, Entries, Spill, newest_of
from mirror_lib.features.verify.state.plan import SHARED_TARGET, plan_state
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.runs import OffsetRun, merge
from mirror_lib.records.varint import encode_varint
from mirror_lib.topology.names import FlowId
from tests.support.brokers.partitions import verify_facts

DIGESTER = Digester(b"secret")
NOTHING = newest_of(np.empty(0, digests.ENTRY))
#: Offset, key, value.
Row = tuple[int, str, str | None]


def tail(key: bytes | None, value: bytes | None) -> bytes:
    """A record on the wire behind its deltas, without headers."""
    parts = [encode_varint(-1) if part is None else encode_varint(len(part)) + part for part in (key, value)]
    return b"".join(parts) + encode_varint(0)


def entries(rows: list[Row]) -> Entries:
    made = [
        DIGESTER.entry(offset, tail(key.encode(), None if value is None else value.encode()))
        for offset, key, value in rows
    ]
    return newest_of(np.frombuffer(b"".join(each or b"" for each in made), digests.ENTRY))


def compared(source: list[Row], target: list[Row], rules: StateRules, late: list[Row] | None = None) -> StateFindings:
    findings = StateFindings(keep=100, keep_lost=True)
    compare_states(entries(source), entries(target), entries(late) if late else NOTHING, rules, findings)
    return findings


def rules(*, copied_to: int, map_: list[tuple[int, int, int]], **more: object) -> StateRules:
    runs = tuple(OffsetRun(*each) for each in map_)
    settings = {"source_start": 0, "target_start": 0, "source_end": 1 << 40, "target_end": 1 << 40, **more}
    return StateRules(copied_to=copied_to, map=OffsetMap.of_runs(runs), **settings)  # type: ignore[arg-type]


@dataclass
class World:
    """A source, its copy, and all that ever happened to them."""

    history: list[tuple[str, str | None]] = field(default_factory=list)
    source: list[Row] = field(default_factory=list)
    target: list[Row] = field(default_factory=list)
    copied: list[tuple[int, int]] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    position: int = 0
    target_end: int = 0
    source_start: int = 0

    def produce(self, key: str, value: str | None) -> None:
        self.source.append((len(self.history), key, value))
        self.history.append((key, value))

    def run(self, skipped: int, markers: int) -> None:
        """Copy what the source still holds behind the position."""
        self.target_end += markers
        for number, (offset, key, value) in enumerate(row for row in self.source if row[0] >= self.position):
            if number + 1 == skipped:
                self.skipped.append(offset)
                continue
            self.target.append((self.target_end, key, value))
            self.copied.append((offset, self.target_end))
            self.target_end += 1
        self.position = len(self.history)

    def clean(self, side: str, upto: int, *, tombstones: bool) -> None:
        """What Kafka's cleaner does to the part of a log before an offset: keep the newest of each key."""
        rows: list[Row] = getattr(self, side)
        newest = {key: offset for offset, key, _ in rows if offset < upto}
        kept = [
            row for row in rows if row[0] >= upto or (row[0] == newest[row[1]] and not (tombstones and row[2] is None))
        ]
        setattr(self, side, kept)

    def expire(self, start: int) -> None:
        self.source_start = max(self.source_start, min(start, len(self.history)))
        self.source = [row for row in self.source if row[0] >= self.source_start]

    def rules(self) -> StateRules:
        runs = merge(OffsetRun(*each, 1) for each in self.copied)
        return StateRules(
            copied_to=self.position,
            source_start=self.source_start,
            target_start=0,
            map=OffsetMap.of_runs(runs),
            source_end=len(self.history),
            target_end=self.target_end,
            skipped=[(offset, offset + 1) for offset in self.skipped],
        )

    def state(self, side: str) -> dict[str, Row]:
        rows: list[Row] = getattr(self, side)
        return {row[1]: row for row in rows}


keys = st.sampled_from("abcd")
steps = st.one_of(
    st.tuples(st.just("produce"), keys, st.sampled_from(["1", "2", None])),
    st.tuples(st.just("run"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("clean"), st.sampled_from(["source", "target"]), st.integers(0, 30), st.booleans()),
    st.tuples(st.just("expire"), st.integers(0, 12)),
)


@given(st.lists(steps, max_size=40))
def test_lost_deletions_and_nothing_else_are_found_however_the_logs_are_cleaned(
    taken: list[tuple[object, ...]],
) -> None:
    world = World()
    for name, *words in taken:
        match name, words:
            case "produce", [key, value]:
                world.produce(key, value)  # type: ignore[arg-type]
            case "run", [skipped, markers]:
                world.run(skipped, markers)  # type: ignore[arg-type]
            case "clean", [side, upto, tombstones]:
                world.clean(side, upto, tombstones=tombstones)  # type: ignore[arg-type]
            case "expire", [start]:
                world.expire(start)  # type: ignore[arg-type]

    found = compared(world.source, world.target, world.rules())

    source, target, origin = world.state("source"), world.state("target"), {b: a for a, b in world.copied}
    lives_on = {
        key: row
        for key, row in target.items()
        if row[2] is not None and key not in source and origin[row[0]] >= world.source_start
    }
    assert found.differences == [
        Difference(DifferenceKind.DELETION_LOST, origin[row[0]], row[0])
        for row in sorted(
            lives_on.values(), key=lambda row: [each.target_offset for each in found.differences].index(row[0])
        )
    ]
    assert sorted(np.concatenate([*found.lost, []]).tolist()) == sorted(row[0] for row in lives_on.values())
    # By the whole history: each of them was deleted after it was copied, and what is equal is not deleted.
    for key, row in lives_on.items():
        assert (key, None) in world.history[origin[row[0]] + 1 :]
    alike = {key for key, row in source.items() if key in target and target[key][2] == row[2]}
    assert found.counts[KeyState.EQUAL] == len(alike)
    last = {key: offset for offset, (key, _) in enumerate(world.history)}
    waiting = {key for key, row in source.items() if row[0] >= world.position and (row[2] is not None or key in target)}
    assert found.counts[KeyState.PENDING] == len(waiting - alike)
    assert all(last[key] >= world.position for key in waiting)


def test_keys_that_differ_are_told_by_what_they_lack() -> None:
    source: list[Row] = [(0, "same", "1"), (1, "other", "1"), (2, "missing", "1"), (4, "back", "2")]
    target: list[Row] = [(0, "same", "1"), (1, "other", "2"), (3, "lost", "1"), (5, "extra", "1"), (4, "back", "1")]

    found = compared(source, target, rules(copied_to=5, map_=[(0, 0, 2), (3, 3, 1), (4, 4, 1)]))

    assert {(each.kind, each.source_offset, each.target_offset) for each in found.differences} == {
        (DifferenceKind.ALTERED, 1, 1),
        (DifferenceKind.ALTERED, 4, 4),
        (DifferenceKind.MISSING, 2, None),
        (DifferenceKind.DELETION_LOST, 3, 3),
        (DifferenceKind.EXTRA, None, 5),
    }
    assert (found.difference_count, found.deletions_lost, found.counts[KeyState.EQUAL]) == (5, 1, 1)


def test_what_only_one_side_shows_to_readers_of_committed_records_has_a_kind_of_its_own() -> None:
    # Offsets 1, 3 of the source and 6 of the target are of aborted transactions, 8 and 9 of open ones.
    aborted = {"aborted_on_source": [(1, 2), (3, 4)], "aborted_on_target": [(6, 7)]}
    known = rules(copied_to=10, map_=[(0, 0, 10)], source_end=8, **aborted)
    source: list[Row] = [(0, "replaced", "1"), (6, "copied back", "1"), (7, "open", "1")]
    target: list[Row] = [(1, "replaced", "2"), (3, "written", "1"), (8, "open", "2"), (9, "also open", "1")]

    found = compared(source, target, known)

    assert {(each.kind, each.source_offset, each.target_offset) for each in found.differences} == {
        (DifferenceKind.ABORTED, 0, 1),
        (DifferenceKind.ABORTED, 3, 3),
        (DifferenceKind.ABORTED, 6, None),
    }
    assert (found.aborted, found.deletions_lost, found.counts[KeyState.PENDING]) == (3, 0, 2)


def test_a_key_that_changed_while_both_sides_were_read_waits() -> None:
    map_ = [(0, 0, 2)]

    found = compared(
        [(0, "b", "1")], [(0, "b", "2"), (1, "a", "1")], rules(copied_to=2, map_=map_), [(2, "a", None), (3, "b", "1")]
    )

    assert (found.difference_count, found.counts[KeyState.PENDING]) == (0, 2)


def test_what_a_run_writes_while_it_is_looked_is_no_extra_record() -> None:
    running = rules(copied_to=1, map_=[(0, 0, 1)], settled=False)
    started_later = rules(copied_to=1, map_=[(0, 0, 1)], target_end=1)

    for each in (running, started_later):
        found = compared([], [(1, "a", "1")], each)
        assert (found.difference_count, found.counts[KeyState.PENDING]) == (0, 1)
    assert compared([], [(1, "a", "1")], rules(copied_to=1, map_=[(0, 0, 1)])).difference_count == 1


def test_keys_beyond_what_either_log_still_holds_are_expired() -> None:
    expired = rules(copied_to=9, map_=[(4, 4, 5)], source_start=6, target_start=7)

    found = compared(
        [(6, "retention of the target", "1")], [(5, "of the source", "1"), (2, "older than the map", "1")], expired
    )

    assert (found.difference_count, found.counts[KeyState.EXPIRED]) == (0, 3)


def test_what_the_ledger_knows_is_no_difference() -> None:
    known = rules(copied_to=9, map_=[(0, 0, 2)], skipped=[(3, 4)], rewritten=[(1, 2)], foreign=[(7, 8)])

    found = compared([(3, "poison", "1")], [(1, "truncated", "1"), (7, "foreign", "1")], known)

    assert (found.difference_count, found.counts) == (
        0,
        {
            KeyState.SKIPPED: 2,
            KeyState.FOREIGN: 1,
            KeyState.EQUAL: 0,
            KeyState.PENDING: 0,
            KeyState.DELETED: 0,
            KeyState.EXPIRED: 0,
            KeyState.BEFORE_MAP: 0,
        },
    )


def test_records_from_before_a_first_start_are_no_losses() -> None:
    found = compared([(0, "a", "1")], [], rules(copied_to=5, map_=[(2, 0, 3)]))

    assert (found.difference_count, found.counts[KeyState.BEFORE_MAP]) == (0, 1)


def test_tombstones_are_alike_whatever_their_headers_and_a_value_may_be_empty() -> None:
    with_header = (
        encode_varint(1) + b"k" + encode_varint(-1) + encode_varint(1) + encode_varint(1) + b"h" + encode_varint(-1)
    )

    assert DIGESTER.entry(0, with_header) == DIGESTER.entry(0, tail(b"k", None))
    assert DIGESTER.entry(0, tail(b"k", b"")) != DIGESTER.entry(0, tail(b"k", None))
    assert DIGESTER.entry(0, tail(None, b"value")) is None
    assert DIGESTER.entry(0, tail(b"", b"value")) is not None


def test_a_side_too_large_for_memory_gives_the_newest_record_of_each_key() -> None:
    count, rounds = 4_000, 8
    with Spill(waiting_bytes=512, read_at_once=10) as spill:
        for number in range(rounds):
            for key in range(count if number == 0 else count // 8):
                entry = DIGESTER.entry(number * count + key, tail(str(key).encode(), str(number).encode()))
                assert entry is not None
                spill.add(entry)
        assert spill.on_disk
        found = np.concatenate([spill.newest(bucket) for bucket in range(BUCKETS)])

    assert sorted(found["offset"].tolist()) == sorted(
        list(range(count // 8, count)) + [(rounds - 1) * count + key for key in range(count // 8)]
    )


def test_only_compacted_topics_that_nobody_else_writes_to_are_compared() -> None:
    def fact(topic: str, **more: object) -> VerifyFacts:
        usual: dict[str, Any] = {"source_compacted": True, "copied_to": 5}
        return verify_facts(topic, runs=(OffsetRun(0, 0, 5),), **(usual | more))

    plan = plan_state(
        FlowId("A", "B"),
        [
            fact("compacted"),
            fact("deleted", source_compacted=False),
            fact("new", copied_to=None),
            fact("merged", shared_target=True),
        ],
        bins_max=2,
    )

    assert plan.mode is VerifyMode.STATE
    assert [check.source.topic for check in plan.partitions] == ["compacted"]
    assert plan.idle == 2
    assert [(each.source.topic, each.verdict, each.reason) for each in plan.unverifiable] == [
        ("merged", Verdict.UNVERIFIABLE, SHARED_TARGET)
    ]
