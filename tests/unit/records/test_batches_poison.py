"""The assembler knows what a target refuses and what cannot be read, and leaves out that and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.errors import CorruptBatchError, RecordRefusedError
from mirror_lib.records.assemble import BatchAssembler, ReadyBatch
from mirror_lib.records.damage import measure_damage
from mirror_lib.records.rules import ANY_RECORD, AllowedTimes, RecordRules, lacks_key
from mirror_lib.records.skipped import SkippedRecords, Unit
from mirror_lib.records.split import halves, skipped_batch
from mirror_lib.records.stamping import stamp
from tests.support.records.record_batches import (
    LOG_APPEND_TIME,
    SourceRecord,
    assembler,
    batch,
    fed,
    message_set,
    read_with_aiokafka,
    sealed,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000
MINUTE = 60_000
TIMES = RecordRules(timestamp_before_max_ms=HOUR, timestamp_after_max_ms=HOUR)
NEEDS_KEY = RecordRules(needs_key=True)


def judging(rules: RecordRules = ANY_RECORD, *, skip: bool = True, **more: Any) -> BatchAssembler:
    return assembler(rules=rules, skip=skip, now_ms=lambda: NOW, **more)


def offsets(out: Sequence[ReadyBatch]) -> list[int]:
    """Source offsets of all records, after checking that they are what the batches hold."""
    found = []
    for ready in out:
        stamp(ready, 4711, 7, 0)
        mine = [offset for first, count in ready.source_runs for offset in range(first, first + count)]
        assert len(list(read_with_aiokafka(ready.payload))) == len(mine)
        found += mine
    return found


def places(skipped: Sequence[SkippedRecords]) -> list[tuple[int, int]]:
    return [(each.first_offset, each.next_offset) for each in skipped]


class TestTimes:
    def test_only_the_records_outside_of_the_bounds_are_left_out(self, subtests: pytest.Subtests) -> None:
        times = [NOW, NOW - 2 * HOUR, NOW + 2 * HOUR, NOW, -1]
        records = [SourceRecord(n, timestamp=time) for n, time in enumerate(times)]
        for raw in (batch(records), batch(records, codec=3), message_set(records, magic=1)):
            for passthrough_min in (0, 16_384):
                with subtests.test(raw=raw, passthrough_min=passthrough_min):
                    subject = judging(TIMES, passthrough_min_bytes=passthrough_min)

                    out = fed(subject, raw)

                    assert offsets(out) == [0, 3, 4]
                    assert places(subject.take_skipped()) == [(1, 2), (2, 3)]
                    # Each is given once.
                    assert subject.take_skipped() == []

    def test_what_lies_within_a_minute_of_a_bound_is_left_to_the_brokers_clock(self) -> None:
        times = [NOW - HOUR - MINUTE, NOW + HOUR + MINUTE, NOW - HOUR - MINUTE - 1, NOW + HOUR + MINUTE + 1]
        raw = batch([SourceRecord(n, timestamp=time) for n, time in enumerate(times)])

        assert offsets(fed(judging(TIMES), raw)) == [0, 1]

    def test_a_batch_whose_header_is_within_the_bounds_goes_on_untouched(self) -> None:
        raw = batch([SourceRecord(n, timestamp=NOW) for n in range(3)], codec=4)
        (ready,) = fed(judging(TIMES, passthrough_min_bytes=0), raw)
        assert ready.payload[61:] == raw[61:]

    def test_the_time_that_a_broker_gave_counts_where_it_gave_one(self) -> None:
        raw = batch([SourceRecord(0, timestamp=5)], attributes=LOG_APPEND_TIME, max_timestamp=NOW)
        assert offsets(fed(judging(TIMES), raw)) == [0]

    @given(st.lists(st.integers(-3 * HOUR, 3 * HOUR), min_size=1, max_size=30), st.sampled_from([1, 3]))
    @settings(max_examples=80)
    def test_singles_are_judged_as_all_others_are(self, shifts: list[int], per_batch: int) -> None:
        records = [SourceRecord(n, timestamp=NOW + shift) for n, shift in enumerate(shifts)]
        raws = [batch(records[at : at + per_batch]) for at in range(0, len(records), per_batch)]
        subject = judging(TIMES)

        out = fed(subject, b"".join(raws))

        surely_refused = [n for n, shift in enumerate(shifts) if abs(shift) > HOUR + MINUTE]
        skipped = [each.first_offset for each in subject.take_skipped()]
        # A record further back than its batch's first one is left to the target.
        assert set(skipped) <= set(surely_refused)
        assert sorted([*offsets(out), *skipped]) == list(range(len(shifts)))
        if per_batch == 1:
            assert skipped == surely_refused


class TestKeys:
    @given(
        st.lists(st.lists(st.none() | st.binary(max_size=3), min_size=1, max_size=4), min_size=1, max_size=12),
        st.sampled_from([0, 3]),
        st.sampled_from([0, 16_384]),
    )
    @settings(max_examples=80)
    def test_exactly_the_records_without_one_are_left_out(
        self, keys: list[list[bytes | None]], codec: int, passthrough_min: int
    ) -> None:
        raws, offset, without = [], 0, []
        for members in keys:
            raws.append(batch([SourceRecord(offset + n, key=key) for n, key in enumerate(members)], codec=codec))
            without += [offset + n for n, key in enumerate(members) if key is None]
            offset += len(members)
        subject = judging(NEEDS_KEY, passthrough_min_bytes=passthrough_min)

        out = fed(subject, b"".join(raws))

        assert offsets(out) == [n for n in range(offset) if n not in without]
        assert [each.first_offset for each in subject.take_skipped()] == without
        assert subject.next_offset == offset

    def test_without_leaving_out_the_first_one_ends_the_partition_exactly_there(self) -> None:
        raws = [batch([SourceRecord(n, key=None if n == 3 else b"k")]) for n in range(5)]
        subject = judging(NEEDS_KEY, skip=False)

        assert offsets(fed(subject, b"".join(raws))) == [0, 1, 2]
        assert isinstance(subject.failure, RecordRefusedError)
        assert subject.failure.where.offset == 3

    def test_without_leaving_out_old_messages_end_it_exactly_there_too(self) -> None:
        raw = message_set([SourceRecord(n, key=None if n == 2 else b"k") for n in range(4)], magic=1, codec=1)
        subject = judging(NEEDS_KEY, skip=False)

        out = fed(subject, raw)

        assert offsets(out) == [0, 1]
        assert out[-1].source_next == 2
        assert subject.failure is not None
        assert subject.failure.where.offset == 2

    @given(st.lists(st.none() | st.binary(max_size=200), min_size=1, max_size=9))
    def test_a_body_is_looked_through(self, keys: list[bytes | None]) -> None:
        raw = batch([SourceRecord(n, NOW + n * 10**9, key) for n, key in enumerate(keys)])
        assert lacks_key(raw[61:], len(keys)) == (None in keys)


class TestSize:
    def test_what_surrounds_a_record_that_is_too_large_goes_on(self, subtests: pytest.Subtests) -> None:
        for codec in (0, 1, 3):
            with subtests.test(codec=codec):
                large = bytes((n * n + n // 7) % 251 for n in range(5_000))
                records = [SourceRecord(n, value=large if n in (0, 4, 5) else b"v") for n in range(8)]
                subject = judging(target_max_message_bytes=1_000)

                out = fed(subject, batch(records, codec=codec))

                skipped = subject.take_skipped()
                assert sorted([*offsets(out), *(each.first_offset for each in skipped)]) == list(range(8))
                assert {each.first_offset for each in skipped} <= {0, 4, 5}
                if codec == 0:
                    assert places(skipped) == [(0, 1), (4, 5), (5, 6)]
                assert all(len(ready.payload) <= 1_000 for ready in out)


class TestDamage:
    RECORDS = (SourceRecord(2), SourceRecord(3), SourceRecord(4))

    @given(st.integers(0, 200), st.integers(1, 255), st.sampled_from([0, 3]), st.sampled_from([0, 16_384]))
    @settings(max_examples=250, deadline=None)
    def test_any_changed_byte_costs_at_most_its_own_batch(
        self, at: int, change: int, codec: int, passthrough_min: int
    ) -> None:
        log = [
            batch([SourceRecord(0), SourceRecord(1)], codec=codec),
            batch(self.RECORDS, codec=codec),
            batch([SourceRecord(5)], codec=codec),
            batch([SourceRecord(6)], codec=codec),
        ]
        raw = bytearray(log[1])
        raw[at % len(raw)] ^= change
        subject = judging(passthrough_min_bytes=passthrough_min)

        out = fed(subject, log[0] + bytes(raw) + b"".join(log[2:]))

        skipped = places(subject.take_skipped())
        arrived = offsets(out)
        assert arrived[:2] == [0, 1]
        if at % len(raw) < 8 or 12 <= at % len(raw) < 16:
            # Nothing covers base offset and leader epoch; a batch that lies about its place is read as it says.
            return
        if subject.is_finished or subject.next_offset == 7:
            assert arrived == [0, 1, 5, 6]
            assert skipped == [(2, 5)]
        else:
            # A length beyond the fetch: the batch looks incomplete, and nothing after it is taken.
            assert (arrived, skipped, subject.next_offset) == ([0, 1], [], 2)
            assert 8 <= at % len(raw) < 12 or at % len(raw) == 16

    def test_a_body_that_cannot_be_read_under_a_right_checksum_is_left_out_with_its_number(self) -> None:
        raw = bytearray(batch(self.RECORDS, codec=1))
        raw[61:] = b"\xff" * (len(raw) - 61)
        good = [batch([SourceRecord(0), SourceRecord(1)], codec=1), batch([SourceRecord(5)], codec=1)]
        subject = judging()

        out = fed(subject, good[0] + sealed(raw) + good[1])

        (skipped,) = subject.take_skipped()
        assert offsets(out) == [0, 1, 5]
        assert (skipped.first_offset, skipped.next_offset, skipped.records) == (2, 5, 3)
        assert (skipped.unit, skipped.raw) == (Unit.BATCH, sealed(raw))
        assert skipped.first_timestamp == self.RECORDS[0].timestamp

    def test_a_batch_that_waited_alone_and_cannot_be_read_is_left_out(self) -> None:
        raw = bytearray(batch([SourceRecord(0), SourceRecord(1)], codec=1))
        raw[61:] = b"\xff" * (len(raw) - 61)
        subject = judging()

        out = fed(subject, sealed(raw) + batch([SourceRecord(2)], codec=1) + batch([SourceRecord(3)], codec=1))

        assert offsets(out) == [2, 3]
        assert places(subject.take_skipped()) == [(0, 2)]

    def test_of_which_leader_epoch_it_was_is_not_known(self) -> None:
        """Its own header is damaged, and the epoch of the batch before ends before it."""
        raw = bytearray(batch(self.RECORDS))
        raw[-1] ^= 1
        subject = judging(end=5)
        sound = bytearray(batch([SourceRecord(0), SourceRecord(1)]))
        # The broker gives it, and no checksum covers it.
        sound[12:16] = (3).to_bytes(4, "big")

        fed(subject, bytes(sound) + bytes(raw))

        assert (subject.next_offset, subject.leader_epoch) == (5, -1)

    def test_the_end_of_the_range_cuts_it(self) -> None:
        raw = bytearray(batch(self.RECORDS))
        raw[-1] ^= 1
        subject = judging(end=4)

        fed(subject, batch([SourceRecord(0), SourceRecord(1)]) + bytes(raw) + batch([SourceRecord(5)]))

        assert places(subject.take_skipped()) == [(2, 4)]
        assert subject.is_finished

    def test_a_damaged_old_message_is_left_out(self) -> None:
        log = [message_set([SourceRecord(n)], magic=1) for n in range(3)]
        subject = judging()

        out = fed(subject, log[0] + log[1][:-1] + b"\xff" + log[2])

        assert offsets(out) == [0, 2]
        assert places(subject.take_skipped()) == [(1, 2)]

    def test_nothing_is_guessed_unless_an_incomplete_batch_behind_it_confirms_the_header(self) -> None:
        # Compaction left two records of five offsets, so the number of records confirms nothing.
        raw = bytearray(batch([SourceRecord(2), SourceRecord(6)]))
        raw[-1] ^= 1
        assert measure_damage(memoryview(raw), expected=2) is None

        following = batch([SourceRecord(7, value=bytes(500))])[:100]
        damage = measure_damage(memoryview(bytes(raw) + following), expected=2)
        assert (damage.size, damage.next_offset) == (len(raw), 7)


class TestHalves:
    @given(
        st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=30)), min_size=2, max_size=20),
        st.sampled_from([0, 1, 3]),
    )
    @settings(max_examples=60)
    def test_both_together_are_the_whole(self, contents: list[tuple[int, bytes]], codec: int) -> None:
        offset, records = 0, []
        for hole, value in contents:
            offset += hole
            records.append(SourceRecord(offset, NOW - offset, b"k", value))
            offset += 1
        (whole,) = fed(judging(passthrough_min_bytes=0), batch(records, codec=codec, base_offset=0))

        parts = halves(whole)

        assert parts is not None
        assert min(part.count for part in parts) >= 1
        assert offsets(parts) == [record.offset for record in records]
        found = [record[3] for part in parts for record in read_with_aiokafka(part.payload)]
        assert found == [record.value for record in records]
        assert parts[-1].source_next == whole.source_next
        assert parts[0].source_next <= parts[1].source_runs[0][0]

    def test_a_body_that_cannot_be_read_has_none(self) -> None:
        (whole,) = fed(judging(passthrough_min_bytes=0), batch([SourceRecord(0), SourceRecord(1)], codec=1))
        whole.payload[61:] = b"\xff" * (len(whole.payload) - 61)
        assert halves(whole) is None
        skipped = skipped_batch(whole, CorruptBatchError("damaged."))
        assert (skipped.first_offset, skipped.next_offset, skipped.unit) == (0, 2, Unit.BATCH)

    def test_a_single_record_is_left_out_as_a_record(self) -> None:
        (whole,) = fed(judging(passthrough_min_bytes=0), batch([SourceRecord(7, NOW, b"k", b"v")], codec=3))
        skipped = skipped_batch(whole, RecordRefusedError("no."))
        assert (skipped.first_offset, skipped.unit, skipped.first_timestamp) == (7, Unit.RECORD, NOW)
        # KIP-98: length 8, no attributes, both deltas 0, key and value of a byte, no headers.
        assert skipped.raw == bytes((16, 0, 0, 0, 2)) + b"k" + bytes((2,)) + b"v" + bytes((0,))


class TestRules:
    def test_an_open_side_has_no_bound(self) -> None:
        assert RecordRules(timestamp_after_max_ms=5).allowed_times(NOW).earliest == AllowedTimes().earliest
        assert RecordRules(timestamp_before_max_ms=5).allowed_times(NOW).latest == AllowedTimes().latest
